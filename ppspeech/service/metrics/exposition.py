"""What Prometheus is told: sums over sessions, refusals by reason, seconds by phase, budgets of all clients together.

Nothing here depends on an answer, and nothing names a client or a person: labels are names of models that are offered,
names of errors, and the few words below and in `SessionBook`; docs/guides/threats.md lists them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ppspeech.errors import PpspeechError
from ppspeech.network import Board
from ppspeech.service.server.book import SessionBook
from ppspeech.service.server.stores import QueryBudget

if TYPE_CHECKING:
    from prometheus_client.core import Metric

LIVE = {
    "ppspeech_ready": "Whether new sessions are taken: 1 or 0.",
    "ppspeech_running_sessions": "Sessions that run now.",
    "ppspeech_waiting_connections": "Connections that wait for a session.",
}
COUNTED = {
    "ppspeech_sessions_started_total": "Connections that were given a session.",
    "ppspeech_sessions_killed_total": "Sessions that died, or were ended for taking too much.",
    "ppspeech_connections_refused_total": "Connections that were never given a session, by reason.",
}
BUDGETS = {
    "ppspeech_budget_spent": "Queries of all clients together that were counted, by model.",
    "ppspeech_budget_clients": "Clients that have asked, by model.",
    "ppspeech_budget_clients_without": "Clients that have no query left, by model.",
    "ppspeech_store_up": "Whether what servers share can be reached: 1 or 0.",
}
START = "ppspeech_start_time_seconds"


@dataclass(frozen=True, eq=False)
class Exposition:
    """A collector of `prometheus_client`: each time it is asked it looks at the board, the book and the budgets.

    `models`: fingerprints of what is served, by the name that it is offered under. `is_up`: whether what servers share
    is reached, which is asked first: whoever watches does not wait for long, least of all when it is not.
    """

    board: Board
    book: SessionBook
    budget: QueryBudget
    models: Sequence[tuple[str, str]]
    is_up: Callable[[], bool] = lambda: True

    def collect(self) -> Iterator["Metric"]:
        """Everything, as it is now."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for name, meaning, rows in self.book.sums():
            sums = CounterMetricFamily(name.removesuffix("_total"), meaning, labels=["protocol", "outcome"])
            for protocol, outcome, value in rows:
                sums.add_metric([protocol, outcome], value)
            yield sums
        live = (self.board["ready"], self.board["running"], self.board["waiting"])
        for (name, meaning), value in zip(LIVE.items(), live, strict=True):
            yield GaugeMetricFamily(name, meaning, value=value)
        started, killed, refused = COUNTED
        yield CounterMetricFamily(started.removesuffix("_total"), COUNTED[started], value=self.board["started"])
        yield CounterMetricFamily(killed.removesuffix("_total"), COUNTED[killed], value=self.board["killed"])
        reasons = CounterMetricFamily(refused.removesuffix("_total"), COUNTED[refused], labels=["reason"])
        for reason, count in self.board.refused.items():
            reasons.add_metric([reason], count)
        yield reasons
        yield from self._budgets(GaugeMetricFamily)
        yield GaugeMetricFamily(START, "When the server started.", value=self.book.started)

    def _budgets(self, family: Any) -> Iterator["Metric"]:
        """Sums over all clients; none of them where the store cannot be reached."""
        *names, up = BUDGETS
        try:
            sums = [(name, self.budget.sums(model)) for name, model in self.models] if self.is_up() else None
        except PpspeechError:
            sums = None
        if sums is None:
            yield family(up, BUDGETS[up], value=0)
            return
        for at, name in enumerate(names):
            gauge = family(name, BUDGETS[name], labels=["model"])
            for model, of_all in sums:
                gauge.add_metric([model], of_all[at])
            yield gauge
        yield family(up, BUDGETS[up], value=1)
