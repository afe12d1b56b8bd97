"""Every sub-command of Apache's `mqadmin` 5.4.0, on our broker and on Apache's: what it prints means the same.

The commands run once on each broker, in the order of `COMMANDS`, where later ones need what earlier ones made. Left out
are `startMonitoring` and `clusterRT`, which never end, `dumpCompactionLog`, `exportMetadataInRocksDB` and
`rocksDBConfigToJson`, which read a broker's files, and those that only repeat another one's requests.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.journeys.conftest import Cluster
from tests.support.apache import CLUSTER, ApacheRocketMQ
from tests.support.asking import ask
from tests.support.java import require_apache
from tests.support.mqadmin_tool import MqAdminTool
from tests.support.our_broker import OurBroker
from tests.support.reading import message_count
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

# {broker}, {namesrv}: addresses; {topics}, {groups}, {out}: files and a folder. Each ends with -n and the name server.
# consumeMessage has a group of its own, which is online for a while or never: its heartbeat may come as it ends.
COMMANDS = """
    updateTopic -b {broker} -t tools-a -r 4 -w 4
    updateTopic -c {cluster} -t tools-b -r 1 -w 1 -o true
    updateTopic -b {broker} -t tools-b -r 2 -w 2 -a +message.type=FIFO
    updateTopic -b {broker} -t tools/bad
    updateTopicList -b {broker} -f {topics}
    updateTopicPerm -b {broker} -t tools-b -p 4
    updateTopicPerm -c {cluster} -t tools-b -p 6
    updateSubGroup -b {broker} -g tools-g
    updateSubGroup -c {cluster} -g tools-h -r 3
    updateSubGroupList -b {broker} -f {groups}
    setConsumeMode -b {broker} -t tools-a -g tools-g -m PULL
    sendMessage -t tools-a -p hello -k key1 -c tagA -b broker-a -i 0
    sendMsgStatus -b broker-a -c 2
    checkMsgSendRT -t tools-b -a 3 -s 10
    topicRoute -t tools-a
    topicRoute -t tools-missing
    topicStatus -t tools-a
    topicStatus -t tools-missing
    topicClusterList -t tools-a
    topicList
    topicList -c
    queryMsgByKey -t tools-a -k key1
    queryMsgByKey -t tools-a -k nokey
    queryMsgByOffset -t tools-a -b broker-a -i 0 -o 0
    queryMsgByUniqueKey -t tools-a -i 7F0000010000000000000000000000AA
    queryMsgById -t tools-a -i 7F00000100002A9F0000000000000000
    queryMsgTraceById -i 7F0000010000000000000000000000AA
    queryCq -b {broker} -t tools-a -q 0 -i 0 -c 5
    queryCq -b {broker} -t tools-a -q 0 -i 0 -c 5 -g tools-g
    printMsg -t tools-a
    printMsgByQueue -t tools-a -a broker-a -i 0 -p true -f true
    consumeMessage -t tools-a -g tools-own -c 2
    brokerConsumeStats -b {broker}
    consumerProgress
    consumerProgress -g tools-g
    consumerConnection -g tools-g
    consumerStatus -g tools-g
    producerConnection -g tools-p -t tools-a
    producer -b {broker}
    getConsumerConfig -g tools-g
    getConsumerConfig -g tools-missing
    cloneGroupOffset -s tools-g -d tools-h -t tools-a
    resetOffsetByTime -g tools-g -t tools-a -s 0
    resetOffsetByTime -g tools-g -t tools-a -s now
    resetOffsetByTimeOld -g tools-g -t tools-a -s 0
    skipAccumulatedMessage -g tools-g -t tools-a
    statsAll -t tools-a
    allocateMQ -t tools-a -i 10.0.0.1,10.0.0.2
    updateKvConfig -s tools -k a -v 1
    deleteKvConfig -s tools -k a
    updateOrderConf -t tools-b -m put -v broker-a:2
    updateOrderConf -t tools-b -m get
    updateOrderConf -t tools-b -m delete
    wipeWritePerm -b broker-a
    addWritePerm -b broker-a
    cleanExpiredCQ -b {broker}
    cleanExpiredCQ -c {cluster}
    cleanUnusedTopic -b {broker}
    cleanUnusedTopic -c {cluster}
    deleteExpiredCommitLog -b {broker}
    deleteExpiredCommitLog -c {cluster}
    getNamesrvConfig
    updateNamesrvConfig -k orderMessageEnable -v false
    updateNamesrvConfig -k kvConfigPath -v x
    getBrokerConfig -b {broker}
    updateBrokerConfig -b {broker} -k fileReservedTime -v 71
    updateBrokerConfig -c {cluster} -k fileReservedTime -v 72
    updateBrokerConfig -b {broker} -k brokerConfigPath -v x
    clusterList
    clusterList -m
    brokerStatus -b {broker}
    exportMetadata -c {cluster} -t -f {out}
    exportMetadata -c {cluster} -g -f {out}
    exportConfigs -c {cluster} -f {out}
    exportMetrics -c {cluster} -f {out}
    haStatus -b {broker}
    getBrokerEpoch -b broker-a
    resetMasterFlushOffset -b {broker} -o 0
    getSyncStateSet -a {namesrv} -b broker-a
    getControllerMetaData -a {namesrv}
    getControllerConfig -a {namesrv}
    addBroker -c {broker} -b x
    removeBroker -c {broker} -b {cluster}:broker-a:0
    deleteTopic -c {cluster} -t tools-b
    deleteTopic -c {cluster} -t TBW102
    deleteSubGroup -b {broker} -g tools-h
    deleteSubGroup -c {cluster} -g tools-missing
"""
# What the two brokers print has figures or names of each one's own: compared is whether it succeeds, and its heading.
FIGURES = frozenset(
    {
        "brokerStatus",
        "checkMsgSendRT",
        "clusterList",
        "consumerProgress",
        "getBrokerConfig",
        "getNamesrvConfig",
        "haStatus",
        "printMsg",
        "printMsgByQueue",
        "queryCq",
        "queryMsgByOffset",
        "statsAll",
        "topicList",
        "wipeWritePerm",
        "addWritePerm",
    }
)
# What would find or leave something else if it were carried out twice.
ONCE = frozenset({"sendMessage", "sendMsgStatus", "checkMsgSendRT", "consumeMessage"})
# What our broker does not have, with the code of its refusal: POP, flow control of cold data, users and rules kept by
# the broker, static topics, RocksDB.
REFUSED = {
    "setConsumeMode -b {broker} -t tools-a -g tools-g -m POP -q 4": 16,
    "getColdDataFlowCtrInfo -b {broker}": 3,
    "updateColdDataFlowCtrGroupConfig -b {broker} -g tools-g -v 1024": 3,
    "removeColdDataFlowCtrGroupConfig -b {broker} -g tools-g": 3,
    "setCommitLogReadAheadMode -b {broker} -m 0": 3,
    "listUser -b {broker}": 3,
    "getUser -b {broker} -u someone": 3,
    "createUser -b {broker} -u someone -p secret": 3,
    "updateUser -b {broker} -u someone -p other": 3,
    "deleteUser -b {broker} -u someone": 3,
    "copyUser -f {broker} -t {broker}": 3,
    "listAcl -b {broker}": 3,
    "getAcl -b {broker} -s User:someone": 3,
    "createAcl -b {broker} -s User:someone -r Topic:* -a Pub -d Allow": 3,
    "updateAcl -b {broker} -s User:someone -r Topic:* -a Sub -d Allow": 3,
    "deleteAcl -b {broker} -s User:someone": 3,
    "copyAcl -f {broker} -t {broker}": 3,
    "checkRocksdbCqWriteProgress -c {cluster} -t tools-a -cf 0": 3,
    "exportPopRecord -b {broker}": 3,
    "switchTimerEngine -b {broker} -e F": 3,
    "updateStaticTopic -t tools-static -qn 4 -b broker-a": 3,
}
LIST = [line.strip() for line in COMMANDS.strip().splitlines()]

_STACK = re.compile(r"^\s+(at |\.\.\. )|^(For more information|See https)|^\s*$")
# The tool lists its own producers, too, where their heartbeat has come already.
_TOOL_ITSELF = re.compile(r"^producer group \((CLIENT_INNER_PRODUCER|\d{13})\) instance ")
_CODE = re.compile(r"CODE: (\d+)")
# What differs between any two runs: ids, times, durations, the port of a client.
_OWN = (
    (re.compile(r"CODE: (\d+) .*"), r"CODE: \1"),
    (re.compile(r"\b[0-9A-F]{32}\b"), "ID"),
    (re.compile(r"\b\d{13}\b"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d[ #]\d\d:\d\d:\d\d[,:]\d+"), "TIME"),
    (re.compile(r"\b\d+ms\b"), "DURATION"),
    (re.compile(r"127\.0\.0\.1:\d+"), "CLIENT"),
    (re.compile(r"\s+"), " "),
)


def run(tool: MqAdminTool, cluster: Cluster, folder: Path, commands: list[str]) -> dict[str, str]:
    """What each command printed, with the cluster's own addresses and folder named instead."""
    topic = '{"topicName":"tools-l","readQueueNums":4,"writeQueueNums":4,"perm":6,"topicFilterType":"SINGLE_TAG"}'
    (folder / "topics.json").write_text(f"[{topic}]")
    (folder / "groups.json").write_text('[{"groupName":"tools-gl"}]')
    names = {
        "broker": cluster.broker,
        "namesrv": cluster.namesrv,
        "cluster": CLUSTER,
        "topics": str(folder / "topics.json"),
        "groups": str(folder / "groups.json"),
        "out": str(folder),
    }
    printed = {}
    for command in commands:
        arguments = command.format_map(names).split()
        own = [] if "-a {namesrv}" in command else ["-n", cluster.namesrv]
        carry_out = tool.run if arguments[0] in ONCE else tool.run_until_answered
        text = carry_out(*arguments, *own)
        if arguments[0] == "sendMessage":
            wait_until(lambda: is_found(cluster.broker, "tools-a", "key1"), what="the message by its key")
        for name in ("broker", "namesrv", "out"):
            text = text.replace(names[name], name)
        printed[command] = text
    return printed


def is_found(broker: str, topic: str, key: str) -> bool:
    """Whether the one message of the topic can be read, and found by its key: Apache's broker indexes it later."""
    fields = {"topic": topic, "key": key, "maxNum": "32", "beginTimestamp": "0", "endTimestamp": str(2**62)}
    found = ask(broker, Command(code=RequestCode.QUERY_MESSAGE, ext_fields=fields)).code == ResponseCode.SUCCESS
    return found and message_count(broker, topic) == 1


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, str]]:
    """What all commands printed: on ours, on Apache's. Brokers of its own: many commands list all that a broker has."""
    require_apache()
    folder = tmp_path_factory.mktemp("mqadmin")
    with (
        OurBroker(folder / "store", arguments=(f"--cluster={CLUSTER}",), patient=True) as ours,
        ApacheRocketMQ(folder / "apache") as apache,
        ThreadPoolExecutor(1) as beside,
    ):
        on_apache = beside.submit(run_all, apache, tmp_path_factory.mktemp("on-apache"), LIST)
        return run_all(ours, tmp_path_factory.mktemp("on-ours"), [*LIST, *REFUSED]), on_apache.result()


def run_all(cluster: Cluster, folder: Path, commands: list[str]) -> dict[str, str]:
    """What the commands printed of the cluster, by command."""
    with MqAdminTool(folder) as tool:
        return run(tool, cluster, folder, commands)


def meaning(text: str, *, has_figures: bool) -> list[str]:
    """The lines in an order that does not depend on Java's hash maps; of figures the heading and the codes alone."""
    lines = [line for line in text.splitlines() if not _STACK.search(line) and not _TOOL_ITSELF.search(line)]
    if has_figures:
        lines = [line for number, line in enumerate(lines) if (number == 0 and line.startswith("#")) or "CODE:" in line]
    for pattern, word in _OWN:
        lines = [pattern.sub(word, line).strip() for line in lines]
    return sorted(lines)


@pytest.mark.parametrize("command", LIST)
def test_a_sub_command_is_answered_as_apache_answers_it(printed, command: str) -> None:
    ours, apaches = (one[command] for one in printed)
    has_figures = command.partition(" ")[0] in FIGURES
    assert meaning(ours, has_figures=has_figures) == meaning(apaches, has_figures=has_figures)


@pytest.mark.parametrize("command", REFUSED)
def test_what_our_broker_does_not_have_is_refused(printed, command: str) -> None:
    codes = _CODE.findall(printed[0][command])
    assert codes == [str(REFUSED[command])]
