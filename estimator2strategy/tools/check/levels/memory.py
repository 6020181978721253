"""The memory that this machine has left for a level."""

from __future__ import annotations

from estimator2strategy.tools.check.levels.check_error import CheckError
from estimator2strategy.tools.check.levels.facts import quantity


def available_bytes() -> float:
    """The bytes that processes can still take here; infinite where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return float(line.split()[1]) * 1024
    except OSError:
        pass
    return float("inf")


def require(wanted: float, what: str) -> None:
    """Refuses what needs more memory than there is, before it takes any.

    Args:
        wanted: Bytes.
        what: The user of the memory: "9 copies of the variables".

    Raises:
        CheckError: There is less.
    """
    available = available_bytes()
    if wanted > available:
        raise CheckError(
            f"{what} need {quantity(wanted, 'bytes')}, and this machine has "
            f"{quantity(available, 'bytes')} left.\n"
            "  Check a smaller model of the same kind (--params), fewer cores (--cores), or "
            "leave this level out (--levels)."
        )
