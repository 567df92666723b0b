"""An invented ocean: any day's sea surface temperature from a seed and a date, nothing stored.

A day is the sum of few parts, each cheap: a mean with fronts, an annual cycle, weather (a bank of
spatial patterns under weights that follow AR(1) processes in time), grain (one noise field, shifted
anew every day), heatwaves, and a trend; sea water freezes at -1.8 degrees Celsius. A day needs no
other day, so threads may make days in any order and the same day is always the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np

from .. import calendar

FREEZING = -1.8  # degrees Celsius
LAND_SHARE = 0.335  # of the cells, as on the OISST grid
TREND = 0.02  # degrees Celsius a year
TREND_CENTRE_YEAR = 2005.5
YEAR_DAYS = 365.2425

LARGE_PATTERNS, LARGE_SCALE, LARGE_MEMORY = 6, 18.0, 30.0  # count, degrees, days
SMALL_PATTERNS, SMALL_SCALE, SMALL_MEMORY = 8, 2.5, 12.0
LARGE_SHARE = 0.55  # of the weather's variance
GRAIN_SCALE, GRAIN_SPREAD = 0.5, 0.05  # degrees of arc, degrees Celsius
BANK_STEPS = 32.0  # int8 steps a standard deviation
HEATWAVES_A_YEAR = 8
FIRST_YEAR = 1850  # the weather's processes start here


@dataclass(frozen=True)
class World:
    """The parts of every day on one grid; float32 (lat, lon) unless said otherwise.

    latitude, longitude  degrees, float64, in the order of the files
    land                 bool
    mean, cosine, sine   degrees Celsius: the annual mean and the annual cycle's two components
    spread               degrees Celsius: standard deviation of the weather
    bank                 int8 (pattern, lat, lon), BANK_STEPS to the standard deviation
    grain                int8 (lat, lon), likewise
    """

    seed: int
    latitude: np.ndarray
    longitude: np.ndarray
    land: np.ndarray
    mean: np.ndarray
    cosine: np.ndarray
    sine: np.ndarray
    spread: np.ndarray
    bank: np.ndarray
    grain: np.ndarray
    weights: np.ndarray  # float64 (day since the first, pattern)
    first_day: int  # day number (1970 = 0) of weights[0]

    def climate(self, day: int) -> np.ndarray:
        """Mean plus annual cycle of a day, float32 (lat, lon), degrees Celsius, land included."""
        angle = 2 * math.pi * day / YEAR_DAYS
        field = self.mean + math.cos(angle) * self.cosine + math.sin(angle) * self.sine
        return field.astype(np.float32)

    def fill(self, day: int, out: np.ndarray) -> None:
        """Write a day's temperature (lat, lon) into `out`, degrees Celsius, NaN on land.

        `out` is float32 or float64; float64 carries the sum's full precision.
        """
        angle = 2 * math.pi * day / YEAR_DAYS
        trend = TREND * (day / YEAR_DAYS + 1970 - TREND_CENTRE_YEAR)
        shift = int(np.random.default_rng((self.seed, 11, day + 10**6)).integers(self.grain.size))
        rows, columns = self._heatwaves(day)
        _fill_day(
            self.mean, self.cosine, self.sine, self.spread, self.land, self.bank,
            self.weights[day - self.first_day] / BANK_STEPS, self.grain.ravel(), shift,
            GRAIN_SPREAD / BANK_STEPS, math.cos(angle), math.sin(angle), trend, rows, columns, out,
        )  # fmt: skip

    def _heatwaves(self, day: int) -> tuple[np.ndarray, np.ndarray]:
        """Heatwaves that are on at a day: amplitude by row and shape by column, float32."""
        year = int(calendar.year_and_dayofyear("standard", np.array([day]))[0][0])
        rows, columns = [], []
        for candidate in (year - 1, year):  # one may last over the year's end
            rng = np.random.default_rng((self.seed, 7, candidate))
            start = int(calendar.day_number("standard", candidate, 1))
            for _ in range(HEATWAVES_A_YEAR):
                begin, duration = start + rng.integers(365), rng.integers(12, 90)
                north, east = rng.uniform(-60, 60), rng.uniform(0, 360)
                radius, peak = rng.uniform(5, 18), rng.uniform(1.2, 4.0)
                age = (day - begin + 0.5) / duration
                if not 0 < age < 1:
                    continue
                away = (self.longitude - east + 180) % 360 - 180
                rows.append(
                    peak
                    * math.sin(math.pi * age) ** 2
                    * np.exp(-(((self.latitude - north) / radius) ** 2))
                )
                columns.append(np.exp(-((away / (1.8 * radius)) ** 2)))
        shape = (len(rows), -1) if rows else (0, 0)
        return (
            np.reshape(np.array(rows, np.float32), shape),
            np.reshape(np.array(columns, np.float32), shape),
        )


def make_world(latitude: np.ndarray, longitude: np.ndarray, seed: int, last_year: int) -> World:
    """The world of a seed on a grid (degrees), able to make days from 1850 to `last_year`."""
    rng = np.random.default_rng((seed, 1))
    lat = np.asarray(latitude, np.float64)[:, None]
    waves = [_waves(lat, longitude, rng, scale) for scale in (55, 26, 13, 40, 30, 9)]
    fine = _filtered_noise(latitude, longitude, rng, 1.5)

    height = waves[0] + 0.5 * waves[1] + 0.25 * waves[2] + 0.1 * fine
    height = height + 3.0 * _step((-lat - 71) / 4) - 1.5 * _step((lat - 74) / 5)
    land = height > np.quantile(height, 1 - LAND_SHARE)

    mean = 30.8 * np.exp(-((np.abs(lat - 3) / 46) ** 2.8)) - 2.9 + 0.7 * waves[3]
    middle = np.exp(-(((np.abs(lat) - 40) / 13) ** 2))
    mean = mean + 2.2 * middle * np.tanh(3.5 * waves[5])  # fronts
    north = _step(lat / 5)  # 1 in the north, 0 in the south, without a seam at the equator
    size = np.exp(-(((np.abs(lat) - 40) / 22) ** 2)) * (1 + 0.25 * waves[4])
    cosine, sine = np.zeros(land.shape), np.zeros(land.shape)
    for share, amplitude, warmest in ((north, 4.9, 232.0), (1 - north, 3.4, 48.0)):
        turn = 2 * np.pi * (warmest + 6 * waves[3]) / YEAR_DAYS  # from days after 1 January
        cosine += share * (amplitude * size + 0.35) * np.cos(turn)
        sine += share * (amplitude * size + 0.35) * np.sin(turn)
    spread = 0.35 + 0.45 * middle * (1 + 0.3 * np.clip(waves[2], -2, 2))

    rng = np.random.default_rng((seed, 2))
    patterns = [
        math.sqrt(LARGE_SHARE / LARGE_PATTERNS) * _waves(lat, longitude, rng, LARGE_SCALE)
        for _ in range(LARGE_PATTERNS)
    ] + [
        math.sqrt((1 - LARGE_SHARE) / SMALL_PATTERNS)
        * _filtered_noise(latitude, longitude, rng, SMALL_SCALE)
        for _ in range(SMALL_PATTERNS)
    ]
    scales = np.array([np.abs(pattern).std() + np.abs(pattern).mean() for pattern in patterns])
    memory = [LARGE_MEMORY] * LARGE_PATTERNS + [SMALL_MEMORY] * SMALL_PATTERNS
    first_day = int(calendar.day_number("standard", FIRST_YEAR, 1))
    days = int(calendar.day_number("standard", last_year + 1, 1)) - first_day
    weights = _autoregression(np.random.default_rng((seed, 3)), days, np.array(memory))
    return World(
        seed=seed, latitude=np.asarray(latitude, np.float64),
        longitude=np.asarray(longitude, np.float64), land=land,
        mean=mean.astype(np.float32), cosine=cosine.astype(np.float32),
        sine=sine.astype(np.float32), spread=spread.astype(np.float32),
        bank=np.stack([_steps(p / s) for p, s in zip(patterns, scales, strict=True)]),
        grain=_steps(_filtered_noise(latitude, longitude, rng, GRAIN_SCALE)),
        weights=weights * scales, first_day=first_day,
    )  # fmt: skip


def _steps(pattern: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(pattern * BANK_STEPS), -127, 127).astype(np.int8)


def _step(x: np.ndarray) -> np.ndarray:
    """A smooth step from 0 to 1 about x = 0."""
    return 0.5 + 0.5 * np.tanh(x)


def _waves(
    lat: np.ndarray, longitude: np.ndarray, rng: np.random.Generator, scale: float
) -> np.ndarray:
    """A smooth random field of unit variance, the same on every grid: plane waves on the sphere.

    `scale` is a typical distance in degrees from crest to trough. Made on a coarser grid where the
    one asked for is much finer than the waves, and interpolated.
    """
    count = 48
    directions = rng.standard_normal((count, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    numbers = directions * (180 / scale) * rng.uniform(0.7, 1.3, (count, 1))
    phases = rng.uniform(0, 2 * np.pi, count)
    step = max(1.0, scale / 9)
    rows = np.linspace(-90, 90, 1 + math.ceil(180 / step))
    columns = np.linspace(0, 360, 1 + math.ceil(360 / step))
    phi, lam = np.radians(rows)[:, None], np.radians(columns)[None, :]
    field = np.zeros((rows.size, columns.size))
    for (a, b, c), phase in zip(numbers, phases, strict=True):
        field += np.cos(np.cos(phi) * (a * np.cos(lam) + b * np.sin(lam)) + c * np.sin(phi) + phase)
    field *= math.sqrt(2 / count)
    return _hat(rows, np.ravel(lat)) @ field @ _hat(columns, longitude % 360).T


def _hat(nodes: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The matrix (point, node) of linear interpolation from evenly spaced nodes."""
    step = nodes[1] - nodes[0]
    return np.clip(1 - np.abs(points[:, None] - nodes[None, :]) / step, 0, None)


def _filtered_noise(
    latitude: np.ndarray, longitude: np.ndarray, rng: np.random.Generator, scale: float
) -> np.ndarray:
    """White noise smoothed by a Gaussian of `scale` degrees, unit variance, (lat, lon)."""
    shape = (len(latitude), len(longitude))
    grid = 360 / shape[1]
    spectrum = np.fft.rfft2(rng.standard_normal(shape))
    waves = np.hypot(np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None, :])
    spectrum *= np.exp(-0.5 * (np.pi * waves * scale / grid) ** 2)
    field = np.fft.irfft2(spectrum, s=shape)
    return (field - field.mean()) / field.std()


def _autoregression(rng: np.random.Generator, days: int, memory: np.ndarray) -> np.ndarray:
    """Unit-variance AR(1) series (day, pattern) whose correlation falls to 1/e in `memory` days."""
    keep = np.exp(-1 / memory)
    series = rng.standard_normal((days, memory.size))
    series[1:] *= np.sqrt(1 - keep**2)
    for day in range(1, days):
        series[day] += keep * series[day - 1]
    return series


@numba.njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "arcp"})
def _fill_day(
    mean: np.ndarray, cosine: np.ndarray, sine: np.ndarray, spread: np.ndarray, land: np.ndarray,
    bank: np.ndarray, weights: np.ndarray, grain: np.ndarray, shift: int, grain_step: float,
    cos_angle: float, sin_angle: float, trend: float,
    wave_rows: np.ndarray, wave_columns: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    rows, columns = mean.shape
    weather = np.empty(columns, np.float32)
    real = out.dtype.type
    for row in range(rows):
        weather[:] = 0
        for k in range(bank.shape[0]):
            weight = np.float32(weights[k])
            for column in range(columns):
                weather[column] += weight * np.float32(bank[k, row, column])
        heat = np.zeros(columns, np.float32)
        for wave in range(wave_rows.shape[0]):
            if wave_rows[wave, row] > 0.01:
                for column in range(columns):
                    heat[column] += wave_rows[wave, row] * wave_columns[wave, column]
        start = row * columns + shift
        for column in range(columns):
            at = start + column
            if at >= grain.size:
                at -= grain.size
            value = (
                real(mean[row, column])
                + real(cos_angle) * real(cosine[row, column])
                + real(sin_angle) * real(sine[row, column])
                + real(spread[row, column]) * real(weather[column])
                + real(heat[column])
                + real(grain_step) * real(grain[at])
                + real(trend)
            )
            if value < real(FREEZING):
                value = real(FREEZING)
            out[row, column] = np.nan if land[row, column] else value
