"""Series of known truth, and published ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

# Annual flow of the Nile at Aswan 1871-1970, in 1e8 m^3: data set `Nile` of R (G. W. Cobb, Biometrika 65, 1978). The
# year of its one change is 1898, the 28th, in many papers (first by Cobb; R's strucchange prints "28 1898").
NILE = (
    *(1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140),
    *(1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969),
    *(831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759),
    *(781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890),
    *(744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740),
)


def autoregression(
    random: np.random.Generator, size: int | tuple[int, int], rho: float, sd: float
) -> NDArray[np.float64]:
    """Noise of mean 0 and standard deviation `sd` whose neighbours correlate by `rho`; a series a row."""
    rows, length = size if isinstance(size, tuple) else (1, size)
    innovations = random.normal(0.0, sd * np.sqrt(1 - rho * rho), (rows, length + 300))
    noise: NDArray[np.float64] = lfilter([1.0], [1.0, -rho], innovations, axis=1)[:, 300:]
    return noise if isinstance(size, tuple) else noise[0]
