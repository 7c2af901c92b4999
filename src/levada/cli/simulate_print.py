"""How is a simulated run shown to a person?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from levada.cli.printing import plural, printer

if TYPE_CHECKING:
    from levada.lab.stages.figures import Figures

__all__ = ["show"]


def show(figures: Figures, controller: str, seconds: float) -> None:
    out = printer()
    out.print(f"{controller}: {plural(figures.generated, 'job')} in {seconds:,.0f} simulated seconds", style="bold")
    out.print(
        f"completed {figures.completed:,}, dropped {figures.dropped:,} ({100 * figures.drop_rate:.2f} %), "
        f"{figures.throughput_per_min:,.0f} per minute"
    )
    out.print(
        f"latency   mean {figures.latency_mean_s:.3f} s, half within {figures.latency_p50_s:.2f} s, "
        f"99 % within {figures.latency_p99_s:.2f} s, all within {figures.latency_max_s:.2f} s"
    )
    for stage, on in enumerate(figures.on_workers):
        out.print(
            f"stage {stage + 1}   {on:.2f} workers on, {figures.paid_workers[stage]:.2f} paid, "
            f"{figures.busy_workers[stage]:.2f} busy; queue {figures.queue_mean[stage]:.2f} on average, "
            f"{figures.queue_max[stage]} at most"
        )
    out.print(f"in all    {sum(figures.paid_workers):.2f} paid workers, {plural(figures.decisions, 'decision')}")
    if figures.held_s:
        out.print(f"the source was held back for {figures.held_s:,.1f} s")
