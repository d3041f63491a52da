"""Properties of room ``watermark``: model, simulation and Spark pipeline side by side."""
