"""Scenes in files of every format, for the tests of what reads and writes them."""

import numpy as np

from made_scenes import FOLDER, real

KINDS = ("hdr", "tif", "zarr", "nc", "npy")
"""The formats of which maps are written, by suffix."""

TRANSFORM, CRS = (30.0, 0.0, 500000.0, 0.0, -30.0, 4000000.0), "EPSG:32610"


def made(rows=11, columns=7, bands=6, n=3, seed=0):
    """Return a scene of integers with n pure pixels, and their spectra."""
    rng = np.random.default_rng(seed)
    spectra = (rng.random((n, bands)) * 900 + 100).round()
    shares = rng.dirichlet(np.ones(n), rows * columns)
    shares[:: max(1, rows * columns // n)][:n] = np.eye(n)
    noisy = 0.9 * shares @ spectra + rng.normal(0, 2, (rows * columns, bands))
    X = np.where(shares.max(axis=1)[:, None] == 1, spectra[shares.argmax(axis=1)], noisy)
    return X.round().clip(1).astype(np.uint16).reshape(rows, columns, bands), spectra


def jasper_ridge():
    """Return Jasper Ridge, or a made scene where there is no data folder."""
    if FOLDER is None:
        return made(40, 30, 50, 4)[0]
    return (real("jasper_ridge")[0] * 5000).round().astype(np.uint16).reshape(100, 100, -1)


def save(X, path, *, no_data=None, wavelengths=None, **header):
    """Write a scene; more fields are for the header of ENVI."""
    kind = path.suffix[1:]
    if kind == "npy":
        np.save(path, X)
    elif kind == "hdr":
        from spectral.io import envi

        fields = {"data ignore value": no_data, "wavelength": wavelengths, **header}
        given = {name: value for name, value in fields.items() if value is not None}
        envi.save_image(str(path), X, dtype=X.dtype, metadata=given, interleave="bil")
    elif kind == "tif":
        save_tiff(X, path, no_data)
    else:
        import xarray

        scene = xarray.DataArray(X, dims=("y", "x", "band"), name="reflectance")
        scene["y"] = 5.0 * np.arange(X.shape[0])
        if wavelengths is not None:
            scene["band"] = wavelengths
        if kind == "nc":
            scene.to_dataset().to_netcdf(path)
        else:
            scene.to_dataset().to_zarr(path, zarr_format=2)
    return path


def save_tiff(X, path, no_data):
    import rasterio

    size = {"height": X.shape[0], "width": X.shape[1], "count": X.shape[2], "dtype": X.dtype}
    place = {"crs": CRS, "transform": rasterio.Affine(*TRANSFORM), "nodata": no_data}
    with rasterio.open(path, "w", driver="GTiff", **size, **place) as file:
        file.write(np.moveaxis(X, 2, 0))


def read_map(folder, name, kind):
    """Return a map as an array (rows, columns, layers), by the library of its format."""
    path = folder / f"{name}.{kind}"
    if kind == "npy":
        found = np.load(path)
    elif kind == "hdr":
        import spectral

        found = np.array(spectral.envi.open(str(path)).open_memmap(interleave="bip"))
    elif kind == "tif":
        import rasterio

        with rasterio.open(path) as file:
            found = np.moveaxis(file.read(), 0, 2)
    else:
        import xarray

        engine = {"nc": "netcdf4", "zarr": "zarr"}[kind]
        with xarray.open_dataset(path, engine=engine) as data:
            found = data[name].values
    return found if found.ndim == 3 else found[:, :, None]


def map_bytes(folder):
    """Return the bytes of all files that are maps, by their paths in the folder."""
    names = ("abundance", "residual", "gap")
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    inside = {path.relative_to(folder): path for path in files}
    return {at: path.read_bytes() for at, path in inside.items() if at.parts[0].startswith(names)}
