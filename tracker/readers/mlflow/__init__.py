"""MLflow 3.x: database stores, tracking servers, legacy file stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracker.batch import Batch, Refusal, Source
    from tracker.readers.base import Folder, Selection
    from tracker.study import Study

_SERVERS = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class MlflowReader:
    """Reads MLflow stores: a Reader, a BulkReader and an AddressReader."""

    name: str = "mlflow"
    version: int = 1

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:
        """The runs of databases among a folder's files, and of a file store's folder."""
        from tracker.readers.mlflow import database, files

        return [*database.find(folder, study), *files.find(folder, study)]

    def serves(self, address: str) -> bool:
        """Databases and tracking servers."""
        from tracker.readers.mlflow import store

        return address.startswith(_SERVERS) or store.serves(address)

    def find_address(self, address: str, study: Study, selection: Selection) -> Sequence[Source]:
        """The runs behind an address; InputError when it cannot be opened."""
        if address.startswith(_SERVERS):
            from tracker.readers.mlflow import server

            return server.find(address, study, selection)
        from tracker.readers.mlflow import database

        return database.find_address(address, study, selection)

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:
        """One run."""
        for _, items in self.read_many([source], study):
            yield from items

    def read_many(self, sources: Sequence[Source], study: Study) -> Iterator[tuple[Source, Iterator[Batch | Refusal]]]:
        """Runs of one store, in order."""
        if not sources:
            return
        if sources[0].uri.startswith(_SERVERS):
            from tracker.readers.mlflow import server

            yield from server.read_many(sources, study)
            return
        from tracker.readers.mlflow import database

        if database.is_of_database(sources[0]):
            yield from database.read_many(sources, study)
        else:
            from tracker.readers.mlflow import files

            yield from ((source, files.read(source, study)) for source in sources)


READER = MlflowReader()
