"""A Spark session with a JVM of its own, which ends with it.

The JVM is started from here and not by Spark's launcher: the launcher insists on a module that small Java run-times
lack (`jdk.incubator.vector`), needs bash, and a second JVM. The JVM writes port and secret of its gateway into a file,
and ends when its standard input is closed, so it cannot outlive this process. The same with SPARK_MASTER naming a
cluster: then only the driver runs here.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from mqadmin.reports.java import find_java
from mqadmin.reports.progress import OpenStage, Stages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# One day of a million samples needs 400 MiB. Of 10,000 groups (230 million) up to 1,250 MiB are alive at a time, more
# than a heap of 1 GiB; with this one all processes have 3.4 GB resident, of the 4 that a report may take.
DRIVER_MEMORY_MIB = 2048
# A JVM on a machine that compiles and tests at the same time.
START_TIMEOUT_S = 180.0
END_TIMEOUT_S = 20.0
# A connection breaks a moment before the process behind it is gone.
ENDED_WITHIN_S = 2.0
# A connection within a data centre takes a millisecond.
MASTER_TIMEOUT_S = 5.0
# A cluster may be busy with the jobs of others, or have no worker: then Spark itself would wait without end.
EXECUTOR_WAIT_S = 600.0
# Of so much history and less, some 1.1 million samples, compiling takes longer than what is then computed. A million
# took 80 s of processors in place of 110; three million, 144 in place of 142.
LIGHT_BYTES_MAX = 8 * 1024 * 1024
# For a JVM that computes no more. Planning anew after each stage gains nothing then, and takes a seventh of the time.
LIGHT_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
        # One compiler alone would have 48 MiB for its code: reports of several days fill that, and compile again.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=160m",
    }
)
_STANDALONE = "spark://"
# Spark's own name for it among the executors.
_DRIVER = "driver"
_POLL_S = 0.05
_OPEN = ("ACTIVE", "PENDING")
_CONF = Path(__file__).parent / "spark_conf"
# What Spark's launcher opens (`JavaModuleOptions`), without the module for vectors.
_JVM_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in (
            *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
            *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
            *("sun.security.action", "sun.util.calendar"),
        )
    ),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)


def settings_for(history_bytes: int) -> Mapping[str, str]:
    """Returns how Spark is set for a run over so much history: with little, its JVM compiles lightly."""
    return LIGHT_SETTINGS if history_bytes <= LIGHT_BYTES_MAX else {}


class NoSpark(Exception):
    """Spark is not installed, or its JVM did not start."""


class SparkFailed(Exception):
    """Spark could not compute; the text is its own, the stack of the JVM included."""


@dataclass(frozen=True, slots=True)
class SparkConfig:
    """`scratch` takes what Spark spills; `settings` are Spark's own, and win over ours."""

    master: str
    scratch: Path
    driver_memory_mib: int = DRIVER_MEMORY_MIB
    settings: Mapping[str, str] = field(default_factory=dict)


def spark_settings(config: SparkConfig) -> dict[str, str]:
    """Returns Spark's settings for a session that works beside everything else on one machine."""
    scratch = config.scratch
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {
        "spark.master": config.master,
        "spark.app.name": "mqadmin reports",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # Stages are small: AQE joins partitions, and each one more costs 10 ms.
        "spark.sql.shuffle.partitions": "4",
        # ... into tasks that sort within their share of the heap; Spark's own 64 MiB would spill what they read.
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
        "spark.sql.session.timeZone": "UTC",
        # What pages of Spark would show of plans and stages that are done; of a month's reports it would fill the heap.
        "spark.sql.ui.retainedExecutions": "4",
        # A plan of a hundred steps is written as text at each of its stages, for those pages: shortly, then.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.maxPlanStringLength": "2000",
        "spark.sql.debug.maxToStringFields": "4",
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch),
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        # To tell of errors where an expression was written, it asks the JVM and looks for IPython at each of them.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        **(local if config.master.startswith("local") else {}),
        **config.settings,
    }


@contextmanager
def spark_session(config: SparkConfig) -> Iterator[SparkSession]:
    """Starts a JVM and a session in it; both end with the block. Raises NoJava, NoSpark (also if it is killed).

    What the block raises of Spark's own becomes SparkFailed.

    Raises RuntimeError where this process has a session: PySpark would hand out that one, and this block would end it.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise NoSpark(_("PySpark is not installed: install requirements/reports.txt."))
    check_master(config.master)
    config.scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=config.scratch) as folder:
        told = Path(folder) / "gateway"
        jvm = _start_jvm(config, told)
        try:
            port, secret = _wait_for_gateway(jvm, told)
            spark = _connect(port, secret)
            try:
                wait_for_executor(spark, config.master)
                yield spark
            except Exception as error:
                if _has_ended(jvm):
                    words = _(
                        "Interrupted: Spark's JVM ended while it computed, perhaps for want of memory; try again."
                    )
                    raise NoSpark(words) from error
                if _is_of_the_jvm(error):
                    # Its text comes from the JVM, which ends with this block.
                    raise SparkFailed(str(error)) from error
                raise
            finally:
                _disconnect(spark, is_gone=_has_ended(jvm, within_s=0))
        finally:
            _end_jvm(jvm)


def check_master(master: str) -> None:
    """Raises NoSpark when SPARK_MASTER names hosts of which none takes connections: Spark would try for a minute."""
    if not master.startswith(_STANDALONE):
        return
    for place in master.removeprefix(_STANDALONE).split(","):
        host, _colon, port = place.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), MASTER_TIMEOUT_S):
                return
        except (OSError, ValueError):
            continue
    words = _("SPARK_MASTER %(master)s cannot be reached: start that cluster, or unset it to compute on this machine.")
    raise NoSpark(words % {"master": master})


def wait_for_executor(spark: SparkSession, master: str, wait_s: float = EXECUTOR_WAIT_S) -> None:
    """Returns when a cluster has given the session its first executor. Raises NoSpark when it does not in time."""
    if master.startswith("local"):
        return
    give_up_at = time.monotonic() + wait_s
    while all(one.id() == _DRIVER for one in executors(spark)):
        if time.monotonic() >= give_up_at:
            words = _(
                "SPARK_MASTER %(master)s gave no executor within %(n)s s: no worker of it has free cores and memory."
            )
            raise NoSpark(words % {"master": master, "n": round(wait_s)})
        time.sleep(_POLL_S)


def executors(spark: SparkSession) -> list[Any]:
    """Returns what Spark says of its executors, the driver among them: with local[*] that is the only one."""
    context: Any = spark.sparkContext
    found = context._jsc.sc().statusStore().executorList(False)
    return [found.apply(number) for number in range(found.size())]


def stages_so_far(spark: SparkSession) -> Stages:
    """Returns how many stages Spark has planned, and those that are at work or wait."""
    context: Any = spark.sparkContext
    newest = _stage_list(context)
    if not newest.size():
        return Stages(0)
    found = _stage_list(context, *_OPEN)
    open_stages = [found.apply(place) for place in range(found.size())]
    # They are numbered on, and the newest is the first: of those that ended long ago Spark keeps nothing.
    return Stages(
        newest.apply(0).stageId() + 1, [OpenStage(one.numCompleteTasks(), one.numTasks()) for one in open_stages]
    )


def _stage_list(context: Any, *states: str) -> Any:
    """Returns the stages that Spark keeps, those in these states; without any, all."""
    wanted = context._jvm.java.util.ArrayList()
    for state in states:
        wanted.add(context._jvm.org.apache.spark.status.api.v1.StageStatus.valueOf(state))
    nothing, quantiles = context._jvm.java.util.ArrayList(), context._gateway.new_array(context._jvm.double, 0)
    return context._jsc.sc().statusStore().stageList(wanted, False, False, quantiles, nothing)


def _start_jvm(config: SparkConfig, told: Path) -> subprocess.Popen[bytes]:
    java = find_java()
    home = Path(str(importlib.util.find_spec("pyspark").origin)).parent  # type: ignore[union-attr]
    settings = [word for name, value in spark_settings(config).items() for word in ("--conf", f"{name}={value}")]
    command = [
        str(java),
        *_JVM_OPTIONS,
        f"-Xmx{config.driver_memory_mib}m",
        # Spark's launcher would see to this one, too.
        *shlex.split(config.settings.get("spark.driver.extraJavaOptions", "")),
        f"-Djava.io.tmpdir={told.parent}",
        *("-cp", f"{_CONF}{os.pathsep}{home / 'jars' / '*'}"),
        "org.apache.spark.deploy.SparkSubmit",
        *settings,
        "pyspark-shell",
    ]
    environment = {
        **os.environ,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    if config.master.startswith("local"):
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        # With it, each Python that Spark starts would compile PySpark anew from an archive in there.
        environment.pop("SPARK_HOME", None)
    else:
        environment["SPARK_HOME"] = str(home)
    # A Ctrl-C in the terminal is the parent's to handle.
    return subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, start_new_session=True)


def _wait_for_gateway(jvm: subprocess.Popen[bytes], told: Path) -> tuple[int, str]:
    """Returns port and secret, which the JVM writes into a file and then renames: `int port | int length | secret`."""
    give_up_at = time.monotonic() + START_TIMEOUT_S
    while not told.exists():
        if jvm.poll() is not None:
            raise NoSpark(_("Spark's JVM ended with %(code)s before it was ready.") % {"code": jvm.returncode})
        if time.monotonic() > give_up_at:
            raise NoSpark(_("Spark's JVM was not ready within %(n)s s.") % {"n": round(START_TIMEOUT_S)})
        time.sleep(_POLL_S)
    packed = told.read_bytes()
    port, length = struct.unpack_from(">ii", packed)
    return port, packed[8 : 8 + length].decode()


def _connect(port: int, secret: str) -> SparkSession:
    from pyspark import SparkContext  # takes a second to load
    from pyspark.sql import SparkSession  # as does this

    if SparkContext._gateway is not None:
        raise RuntimeError("this process has a Spark session already: end it first")
    ours = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret, "PYSPARK_PYTHON": sys.executable}
    os.environ.update(ours)
    try:
        return SparkSession.builder.getOrCreate()
    except Exception as error:
        raise NoSpark(_("Spark did not start: %(reason)s") % {"reason": first_line(error)}) from error
    finally:
        for name in ours:
            del os.environ[name]


def _has_ended(jvm: subprocess.Popen[bytes], within_s: float = ENDED_WITHIN_S) -> bool:
    try:
        jvm.wait(within_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _is_of_the_jvm(error: Exception) -> bool:
    from py4j.protocol import Py4JError  # only where the reports' requirements are installed
    from pyspark.errors import PySparkException  # as is this

    return isinstance(error, Py4JError | PySparkException)


def _disconnect(spark: SparkSession, *, is_gone: bool) -> None:
    """Ends the session, and with it the gateway's connections; of a JVM that `is_gone` there is nothing to end."""
    from pyspark import SparkContext  # only where the reports' requirements are installed

    gateway: Any = SparkContext._gateway
    if not is_gone:
        spark.stop()
        if gateway is not None:
            gateway.shutdown()
    # The next session of this process has another JVM.
    SparkContext._gateway = SparkContext._jvm = None


def _end_jvm(jvm: subprocess.Popen[bytes]) -> None:
    assert jvm.stdin is not None
    jvm.stdin.close()
    try:
        jvm.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()


def first_line(error: BaseException) -> str:
    """Returns what an exception of Spark's says, without the stack of the JVM behind it."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
