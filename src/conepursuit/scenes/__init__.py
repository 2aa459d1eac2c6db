"""Scenes in files: read in tiles, unmixed, and written as maps, pictures and a report.

A scene is an image with a spectrum for each pixel, an array (rows, columns, bands). It need not
fit into memory: it is read, unmixed and written a few rows at a time.

- ``scene``: what a `Scene` and a `MapFile` are, and `open_scene`, which knows the formats.
- ``plain``: .npy, .npz and .mat; ``envi``: ENVI images and libraries; ``geotiff``; ``labelled``:
  NetCDF and Zarr. Each opens a scene and writes maps of its format.
- ``results``: the folder of a run, where it stands, and how an interrupted one goes on.
- ``streaming``: read a tile, unmix another and write a third, all at the same time.
- ``survey``: what the finished maps hold, in a size that can be drawn.
- ``pictures`` and ``report``: maps as .png files, and one page with everything.

The libraries that read formats are imported when a file of that format is opened; they come with
``pip install "conepursuit[scenes]"``.
"""

from conepursuit.scenes.scene import MapFile, Scene, open_scene

__all__ = ["MapFile", "Scene", "open_scene"]
