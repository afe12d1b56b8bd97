"""Where the Java parts of the tests lie, and how a JVM is started for them. Nothing here reaches the network."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.support.tools import require

JAVA_TESTS = Path(__file__).parents[1] / "java"
APACHE_VERSION = "5.4.0"
# The last broker of the 4 line in Maven's repository.
OLD_APACHE_VERSION = "4.9.7"
APACHE_JARS = JAVA_TESTS / f"apache/target/lib-{APACHE_VERSION}"
DRIVER = JAVA_TESTS / "driver/target"

# What RocketMQ's own start scripts open for its off-heap tricks on Java 17.
_OPENED = (
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
)
# RocketMQ 5 writes its warnings to a file, where the reason of a failure can be read. (4.9 logs in its own way.)
_LOGGING = """<configuration>
<appender name="file" class="ch.qos.logback.core.FileAppender">
<file>{}</file><encoder><pattern>%d %level %logger{{20}} %thread %m%n</pattern></encoder>
</appender>
<root level="WARN"><appender-ref ref="file"/></root>
</configuration>
"""
# Short lives on few cores: start fast, compile lightly.
QUICK_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xms64m", "-Xmx512m")


def java_executable() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home and Path(home, "bin/java").exists():
        return str(Path(home, "bin/java"))
    return shutil.which("java")


def apache_jars(version: str) -> Path:
    """The folder with name server, broker and tools of a version."""
    return APACHE_JARS.with_name(f"lib-{version}")


def require_apache(version: str = APACHE_VERSION) -> None:
    """Skips, or fails in CI, without a JVM or without Apache's jars."""
    require(java_executable(), "no java on PATH (a JDK 17 is needed)")
    jars = apache_jars(version).glob("rocketmq-broker-*.jar")
    require(any(jars), f"Apache's jars of {version} are not there: run tests/java/fetch.sh")


def require_driver(version: str) -> None:
    """Skips, or fails in CI, unless the driver is compiled for this version of Apache's client."""
    require(java_executable(), "no java on PATH (a JDK 17 is needed)")
    require((DRIVER / f"classes-{version}/.done").exists(), "no Java driver: run tests/java/fetch.sh")


def java_command(classpath: list[Path], main: str, scratch: Path, jvm: tuple[str, ...] = QUICK_JVM) -> list[str]:
    """A command line; `scratch` takes what RocketMQ writes into the user's home (logs, offsets)."""
    java = java_executable()
    if java is None:
        raise AssertionError("no java on PATH")
    log = scratch / f"rocketmq-{main.rpartition('.')[2]}.log"
    logging = log.with_suffix(".logback.xml")
    scratch.mkdir(parents=True, exist_ok=True)
    logging.write_text(_LOGGING.format(log))
    return [
        java,
        *_OPENED,
        *jvm,
        f"-Duser.home={scratch}",
        f"-Djava.io.tmpdir={scratch}",
        f"-Drmq.logback.configurationFile={logging}",
        "-Djava.net.preferIPv4Stack=true",
        "-cp",
        os.pathsep.join(f"{entry}/*" if entry.name.startswith("lib") else str(entry) for entry in classpath),
        main,
    ]
