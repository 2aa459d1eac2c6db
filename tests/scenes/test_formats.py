"""Scenes of every format: what is read, and maps that keep the place of their scene."""

import re
import sys

import numpy as np
import pytest

from conepursuit.scenes import open_scene
from conepursuit.scenes.envi import read_library
from scene_files import CRS, KINDS, TRANSFORM, made, read_map, save

LAYERS = ["oak", "water", "sand"]


@pytest.fixture(name="X", scope="module")
def scene():
    return made()[0]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_array(kind, X, tmp_path):
    scene = open_scene(save(X, tmp_path / f"scene.{kind}"))
    assert scene.shape == X.shape
    assert scene.dtype == X.dtype
    for rows in (slice(0, 11), slice(3, 7), slice(10, 11)):
        found = scene.read(rows)
        np.testing.assert_array_equal(found, X[rows])
        assert found.dtype == X.dtype


@pytest.mark.parametrize("order", ["bip", "bil", "bsq"])
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_envi_in_every_order(order, byte_order, X, tmp_path):
    from spectral.io import envi

    value = {"<": 0, ">": 1}[byte_order]
    envi.save_image(
        str(tmp_path / "scene.hdr"), X, dtype=X.dtype, interleave=order, byteorder=value
    )
    np.testing.assert_array_equal(open_scene(tmp_path / "scene.hdr").read(slice(2, 5)), X[2:5])


def test_the_header_of_envi_is_known(X, tmp_path):
    fields = {
        "wavelengths": [400, 500, 600, 700, 800, 900],
        "no_data": 0,
        "bbl": [1, 1, 0, 1, 1, 0],
        "Reflectance Scale Factor": 1000,  # capitals make spectral warn
    }
    scene = open_scene(save(X, tmp_path / "scene.hdr", **fields))
    assert scene.wavelengths.tolist() == fields["wavelengths"]
    assert scene.no_data == 0.0
    assert scene.bad_bands.tolist() == [False, False, True, False, False, True]
    np.testing.assert_allclose(scene.read(slice(0, 2)), X[:2] / 1000, rtol=1e-6)


@pytest.mark.parametrize("kind", ["nc", "zarr"])
def test_bands_may_come_first(kind, X, tmp_path):
    import xarray

    bands = np.arange(6.0) + 400
    scene = xarray.DataArray(X, dims=("y", "x", "wavelength"), coords={"wavelength": bands})
    data = scene.transpose("wavelength", "y", "x").to_dataset(name="radiance")
    path = tmp_path / f"scene.{kind}"
    data.to_netcdf(path) if kind == "nc" else data.to_zarr(path, consolidated=False)
    found = open_scene(path)
    assert found.wavelengths.tolist() == bands.tolist()
    np.testing.assert_array_equal(found.read(slice(4, 9)), X[4:9])


def test_the_fill_value_of_netcdf_is_nan(X, tmp_path):
    import xarray

    holed = X.astype(np.float32)
    holed[2, 3] = np.nan
    data = xarray.Dataset({"X": (("y", "x", "band"), holed)})
    packed = {"dtype": "int16", "_FillValue": -9, "scale_factor": 0.5}
    data.to_netcdf(tmp_path / "scene.nc", encoding={"X": packed})
    scene = open_scene(tmp_path / "scene.nc")
    np.testing.assert_allclose(scene.read(slice(0, 11)), holed)


@pytest.mark.parametrize("suffix", ["mat", "npz"])
def test_one_of_several_arrays_is_chosen(suffix, X, tmp_path):
    from scipy.io import savemat

    path = tmp_path / f"scene.{suffix}"
    write = savemat if suffix == "mat" else lambda file, arrays: np.savez(file, **arrays)
    write(path, {"Y": X, "names": np.zeros((2, 2))})
    np.testing.assert_array_equal(open_scene(path).read(slice(0, 11)), X)
    write(path, {"Y": X, "Z": X + 1})
    np.testing.assert_array_equal(open_scene(f"{path}:Z").read(slice(0, 2)), X[:2] + 1)
    with pytest.raises(ValueError, match=r"Y \(11, 7, 6\), Z .*2 of them have three axes"):
        open_scene(path)
    with pytest.raises(ValueError, match="got 'W'"):
        open_scene(f"{path}:W")


@pytest.mark.parametrize("kind", KINDS)
def test_maps_hold_what_was_written_in_any_order(kind, X, tmp_path):
    scene = open_scene(save(X, tmp_path / f"scene.{kind}"))
    values = np.random.default_rng(1).random((11, 7, 3)).astype(np.float32)
    values[5, 5] = np.nan
    for name, layers, part in (("abundance", LAYERS, values), ("gap", ["gap"], values[..., :1])):
        file = scene.map_in(tmp_path, name, layers)
        file.create(4)
        for rows in (slice(8, 11), slice(0, 4), slice(4, 8)):
            file.write(rows, part[rows])
        np.testing.assert_array_equal(file.read(slice(3, 9)), part[3:9])
        np.testing.assert_array_equal(read_map(tmp_path, name, kind), part)


def test_maps_of_geotiff_are_where_the_scene_is(X, tmp_path):
    import rasterio

    scene = open_scene(save(X, tmp_path / "scene.tif", no_data=0))
    assert scene.no_data == 0.0
    scene.map_in(tmp_path, "abundance", LAYERS).create(4)
    with rasterio.open(tmp_path / "abundance.tif") as file:
        assert tuple(file.transform)[:6] == TRANSFORM
        assert file.crs == rasterio.CRS.from_string(CRS)
        assert np.isnan(file.nodata)
        assert list(file.descriptions) == LAYERS


@pytest.mark.parametrize("kind", ["nc", "zarr"])
def test_maps_keep_coordinates(kind, X, tmp_path):
    import xarray

    scene = open_scene(save(X, tmp_path / f"scene.{kind}"))
    scene.map_in(tmp_path, "abundance", LAYERS).create(4)
    engine = {"nc": "netcdf4", "zarr": "zarr"}[kind]
    with xarray.open_dataset(tmp_path / f"abundance.{kind}", engine=engine) as data:
        assert data["endmember"].values.tolist() == LAYERS
        assert data["y"].values.tolist() == (5.0 * np.arange(11)).tolist()
        assert data["abundance"].dims == ("y", "x", "endmember")


def test_maps_of_envi_keep_the_place(X, tmp_path):
    from spectral.io import envi

    place = ["UTM", "1", "1", "500000", "4000000", "30", "30", "10", "North"]
    scene = open_scene(save(X, tmp_path / "scene.hdr", **{"map info": place}))
    scene.map_in(tmp_path, "abundance", LAYERS).create(4)
    header = envi.read_envi_header(tmp_path / "abundance.hdr")
    assert header["map info"] == place
    assert header["band names"] == LAYERS


def test_an_envi_library_is_read(tmp_path):
    from spectral.io import envi

    spectra = np.random.default_rng(0).random((3, 6)).astype(np.float32)
    library = envi.SpectralLibrary(spectra, {"spectra names": LAYERS, "wavelength": list("123456")})
    library.save(str(tmp_path / "minerals"))
    found = read_library(tmp_path / "minerals.sli")
    assert found.names == LAYERS
    np.testing.assert_array_equal(found.spectra, spectra)


@pytest.mark.parametrize(
    ("kind", "library"),
    [("hdr", "spectral"), ("tif", "rasterio"), ("nc", "netCDF4"), ("zarr", "zarr")],
)
def test_a_missing_library_is_named(kind, library, X, tmp_path, monkeypatch):
    path = save(X, tmp_path / f"scene.{kind}")
    for name in [*sys.modules]:
        if name.split(".")[0] == library:
            monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=re.escape('pip install "conepursuit[scenes]"')):
        open_scene(path)


@pytest.mark.parametrize("change", [-1, 1])
def test_an_envi_image_of_another_size_is_refused(change, X, tmp_path):
    path = save(X, tmp_path / "scene.hdr")
    data = path.with_suffix(".img")
    content = data.read_bytes()
    data.write_bytes(content[:change] if change < 0 else content + b"\0")
    kind = "truncated" if change < 0 else "too long"
    with pytest.raises(ValueError, match=rf"{kind}.*11 rows, 7 columns.*924 bytes; got"):
        open_scene(path)


@pytest.mark.parametrize("suffix", ["hdr", "tif", "nc", "zarr", "npy", "npz", "mat"])
def test_a_damaged_file_is_named(suffix, tmp_path):
    path = tmp_path / f"scene.{suffix}"
    path.write_bytes(b"this is not a scene" * 20)
    with pytest.raises(ValueError, match=f"scene.{suffix} "):
        open_scene(path)


def with_field(path, name, value):
    lines = [line for line in path.read_text().splitlines() if not line.startswith(f"{name} =")]
    path.write_text("\n".join([*lines, f"{name} = {value}"]) + "\n")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("data ignore value", "{1,2}", "'data ignore value' must be a number"),
        ("interleave", "xyz", "interleave must be bsq, bil or bip; got 'xyz'"),
        ("interleave", "Bil", "interleave must be bsq, bil or bip; got 'Bil'"),
        ("byte order", "7", "byte order must be 0 or 1"),
        ("lines", "-11", "lines must be a positive number"),
        ("bands", "1e3", "invalid literal"),
        ("reflectance scale factor", "0", "must be finite and not 0"),
        ("bbl", "{a, 1, 1, 1}", "could not convert|must have a number"),
        ("wavelength", "{1, 2, 3}", "'wavelength' must have a number for each of 6 bands"),
        ("wavelength", f"{{{', '.join(['1'] * 3_000_000)}}}", "it has .* bytes; .* are the most"),
        ("wavelength", "{\n" + "1,\n" * 60_000 + "1}", "it has .* bytes; .* are the most"),
    ],
)  # fmt: skip
def test_fields_of_envi_that_cannot_be_are_refused(name, value, text, X, tmp_path):
    path = save(X, tmp_path / "scene.hdr")
    with_field(path, name, value)
    with pytest.raises(ValueError, match=rf"^{path}.*({text})"):
        open_scene(path)


def test_wavelengths_that_are_no_numbers_are_not_known(X, tmp_path, capfd):
    path = save(X, tmp_path / "scene.hdr")
    with_field(path, "wavelength", "{a, b}")
    assert open_scene(path).wavelengths is None
    assert not any(capfd.readouterr())


def saved_mat(path, *, packed=False):
    from scipy.io import savemat

    savemat(path, {"X": np.random.default_rng(0).random((5, 4, 6)), "s": {"a": "text"}},
            do_compression=packed)  # fmt: skip
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [100, 130, 150, 400, -9])
def test_a_truncated_mat_file_is_named(size, packed, tmp_path):
    path = saved_mat(tmp_path / "scene.mat", packed=packed)
    assert open_scene(path).shape == (5, 4, 6)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=f"^{path} "):
        open_scene(path)


def test_a_mat_file_at_which_scipy_may_crash_is_refused(tmp_path):
    path = saved_mat(tmp_path / "scene.mat")
    content = bytearray(path.read_bytes())
    content[185] = 0x40  # the kind of the numbers of X, by which SciPy looks into a table
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"scene.mat is not a .mat file.* an element of the kind"):
        open_scene(path)


def test_metadata_of_zarr_that_are_nested_deeply_are_named(X, tmp_path):
    path = save(X, tmp_path / "scene.zarr")
    for file in path.rglob(".z*"):
        file.write_text("[" * 100_000)
    with pytest.raises(ValueError, match=f"^{path} "):
        open_scene(path)


@pytest.mark.parametrize("shape", [(-1, 4, 6), (-5, -4, 6), (10**9, 10**9, 10**9)])
def test_shapes_of_npy_that_cannot_be_are_refused(shape, tmp_path):
    path = tmp_path / "scene.npy"
    with path.open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(960))
    with pytest.raises(ValueError, match=f"^{path} is not a .npy file, or is damaged"):
        open_scene(path)


def test_rows_that_cannot_be_read_are_named(X, tmp_path):
    path = save(X, tmp_path / "scene.zarr")
    found = open_scene(path)
    for file in (path / "reflectance").glob("0*"):
        file.write_bytes(b"damaged")
    with pytest.raises(ValueError, match=f"^{path} is not a whole .zarr file, or is damaged"):
        found.read(slice(0, 2))


def test_an_array_that_is_no_scene_is_refused(tmp_path):
    np.save(tmp_path / "flat.npy", np.ones((5, 4)))
    with pytest.raises(ValueError, match=r"\(rows, columns, bands\).*got \(5, 4\)"):
        open_scene(tmp_path / "flat.npy")
    np.save(tmp_path / "complex.npy", np.ones((5, 4, 3), dtype=complex))
    with pytest.raises(ValueError, match="real numbers; got the type complex128"):
        open_scene(tmp_path / "complex.npy")
