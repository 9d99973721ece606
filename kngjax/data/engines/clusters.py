"""Tables of clusters: Spark, Dask and Ray run the same work on every part, and one driver adds up the replies.

A worker replies once a part, with bytes, and raises nothing: whatever goes wrong there is a reply too. What an engine
runs twice, since a machine was lost or slow, it counts once, as only results that it kept come back.
"""

import abc
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from kngjax.core.errors import silence
from kngjax.data.engines import settled
from kngjax.data.engines.base import READING_FAILED, AbstractEngine, Choose, apart_from, reading
from kngjax.data.work import whole_persons

# PySpark writes messages, in which cells are quoted, to these loggers, also of exceptions that are caught.
_LOGGERS_OF_SPARK = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
# Types whose equal cells have the same bits. Texts are compared by their bytes.
_WHOLE_IN_SPARK = ("ByteType", "ShortType", "IntegerType", "LongType")
_EXACT_IN_SPARK = (*_WHOLE_IN_SPARK, "BooleanType", "DateType", "StringType")
# Tasks that were told to end still write.
_MOST_SECONDS = 10.0


class AbstractCluster(AbstractEngine):
    """Holds a distributed table. **Arguments:** `source`: the table. `rows`: of a batch."""

    def __init__(self, source: Any, rows: int):
        self.source, self.rows = source, rows

    @abc.abstractmethod
    def _run(self, choose: Choose, work: Any) -> Iterable[tuple[int, bytes]]:
        """Runs the work on every part, by workers; gives each part's number and its pickled reply."""

    def replies(self, choose: Choose, work: Any, moved: Callable[[int], Any]) -> Iterable[tuple[int, Any]]:
        found = reading(lambda: [(part, pickle.loads(reply)) for part, reply in self._run(choose, work)])
        if any(reply is None for _, reply in found) or len(dict(found)) < len(found):
            raise ValueError(READING_FAILED.format("an error of a worker"))
        return found


class Spark(AbstractCluster):
    """Reads a DataFrame of Spark by `mapInArrow`, which Spark Connect has too.

    **Arguments:** `person`: as of `AbstractEngine`; of a frame whose partitions hold whole persons, sorted.
    """

    name = "a DataFrame of Spark"

    def __init__(self, source: Any, rows: int, person: str | None = None):
        super().__init__(source, rows)
        self.person = person

    def is_settled(self) -> bool:
        return settled.frame_of_spark(self.source)

    def declared(self, choose: Choose) -> list[Any]:
        from pyspark.sql.pandas.types import to_arrow_schema  # pyright: ignore[reportMissingImports]

        return [reading(lambda: to_arrow_schema(self.source.schema).empty_table())]

    def _run(self, choose: Choose, work: Any) -> Iterable[tuple[int, bytes]]:
        from pyspark.sql import functions  # pyright: ignore[reportMissingImports]

        names, person = choose(self.source.columns) or self.source.columns, self.person
        # Spark takes a point in a name for a part of it where it asks for columns by itself.
        columns = [functions.col(_quoted(name)).alias(str(place)) for place, name in enumerate(names)]

        def on_worker(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow
            from pyspark import TaskContext  # pyright: ignore[reportMissingImports]

            context = TaskContext.get()
            tables = (pyarrow.RecordBatch.from_arrays(batch.columns, names=list(names)) for batch in batches)
            if person is not None:
                tables = whole_persons(tables, person)
            part, reply = -1 if context is None else context.partitionId(), work.reply(tables)
            yield pyarrow.RecordBatch.from_pydict(
                {"part": pyarrow.array([part], pyarrow.int64()), "reply": pyarrow.array([reply], pyarrow.binary())}
            )

        with _quiet_spark(self.source):
            rows = self.source.select(*columns).mapInArrow(on_worker, "part long, reply binary").collect()
        return [(row.part, bytes(row.reply)) for row in rows]

    def grouped(self, choose: Choose) -> "Spark | None":
        from pyspark.sql import functions  # pyright: ignore[reportMissingImports]

        kinds = self._kinds()
        names = choose(self.source.columns) or []
        if not names or not self._may_shuffle() or any(kinds[name] not in _EXACT_IN_SPARK for name in names):
            return None

        def each(cast: str) -> list[Any]:
            made = ((name, functions.col(_quoted(name)), kinds[name] == "StringType") for name in names)
            return [(column.cast(cast) if is_text else column).alias(name) for name, column, is_text in made]

        # Collations take texts for equal that differ.
        rows, times = self.source.select(*each("binary")), functions.col(apart_from(names))
        by = [functions.col(_quoted(name)) for name in names]
        counted = rows.groupBy(*by).agg(functions.count(functions.lit(1)).alias(apart_from(names)))
        return Spark(counted.select(*each("string"), times), self.rows)

    def by_person(self, person: str) -> "Spark | None":
        from pyspark.sql import functions  # pyright: ignore[reportMissingImports]

        if self._kinds()[person] not in (*_WHOLE_IN_SPARK, "StringType") or not self._may_shuffle():
            return None
        own = functions.col(_quoted(person))
        by = own.cast("binary") if self._kinds()[person] == "StringType" else own
        return Spark(self.source.repartition(by).sortWithinPartitions(by), self.rows, person)

    def _kinds(self) -> dict[str, str]:
        return {field.name: type(field.dataType).__name__ for field in self.source.schema}

    def _may_shuffle(self) -> bool:
        """Whether disks, which rows are written to as they are shuffled, are encrypted."""
        return self.source.sparkSession.conf.get("spark.io.encryption.enabled", "false") == "true"


class Dask(AbstractCluster):
    """Reads a DataFrame of Dask, a task for each partition."""

    name = "a DataFrame of Dask"

    def declared(self, choose: Choose) -> list[Any]:
        return [self.source._meta]

    def _run(self, choose: Choose, work: Any) -> Iterable[tuple[int, bytes]]:
        from dask.base import compute
        from dask.delayed import delayed

        frame = self.source[choose(list(self.source.columns)) or list(self.source.columns)]

        def on_worker(part: int, rows: Any) -> tuple[int, bytes]:
            return part, work.reply([rows])

        # Where only names of types are given, Dask warns of the tables that it moves.
        with silence():
            task = delayed(on_worker, pure=False)
            return compute(*(task(part, rows) for part, rows in enumerate(frame.to_delayed())))


class Ray(AbstractCluster):
    """Reads a Dataset of Ray, a task for each block."""

    name = "a Dataset of Ray"

    def declared(self, choose: Choose) -> list[Any]:
        return [reading(lambda: self.source.schema().base_schema.empty_table())]

    def _run(self, choose: Choose, work: Any) -> Iterable[tuple[int, bytes]]:
        import ray  # pyright: ignore[reportMissingImports]

        size, names = self.rows, choose(self.source.columns()) or self.source.columns()

        def on_worker(part: int, block: Any) -> tuple[int, bytes]:
            return part, work.reply(block.select(names).to_batches(size))

        # A task that fails is no accident: it fails again.
        task = ray.remote(max_retries=0)(on_worker)
        return ray.get([task.remote(part, block) for part, block in enumerate(self.source.to_arrow_refs())])


def _quoted(name: str) -> str:
    doubled = name.replace("`", "``")
    return f"`{doubled}`"


@contextmanager
def _quiet_spark(frame: Any) -> Iterator[None]:
    """Keeps what Spark writes of errors, in which cells are quoted, from stderr: Python's words and Java's."""
    from pyspark.logger import PySparkLogger  # pyright: ignore[reportMissingImports]

    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS_OF_SPARK]
    before = [logger.disabled for logger in loggers]
    # Spark Connect has no Java here.
    context = getattr(frame.sparkSession, "_sc", None)
    speak = None if context is None else _silenced_java(context)
    try:
        for logger in loggers:
            logger.disabled = True
        # What is newer than PySpark makes it warn.
        with silence():
            yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was
        if speak is not None:
            speak()


def _silenced_java(context: Any) -> Callable[[], None]:
    """Denies all messages of the driver's Java, and returns what allows them again, once no task is left to write."""
    log4j, spark = context._jvm.org.apache.logging.log4j, context._jsc.sc()
    logs = log4j.LogManager.getContext(False)
    deny = log4j.core.filter.DenyAllFilter.newBuilder().build()
    logs.getConfiguration().addFilter(deny)
    logs.updateLoggers()

    def speak() -> None:
        end = time.monotonic() + _MOST_SECONDS
        while any(one.numRunningTasks() for one in spark.statusTracker().getExecutorInfos()) and time.monotonic() < end:
            time.sleep(0.05)
        spark.listenerBus().waitUntilEmpty()
        logs.getConfiguration().removeFilter(deny)
        logs.updateLoggers()

    return speak
