"""A producer of transactions over one real socket, for our broker and Apache's: group `shop`, topic `orders`."""

from __future__ import annotations

import asyncio
import itertools
import time

from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.heartbeat import HeartbeatData, ProducerData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.frames import FrameReader, encode_frame
from remoting.wire.message_id import decode_offset_message_id
from remoting.wire.properties import encode_properties
from remoting.wire.stored_message import StoredMessage, decode_messages

WITHIN_S = 60
GROUP, TOPIC = "shop", "orders"
COMMIT, ROLLBACK = 8, 12


class TransactionClient:
    """One connection; `asked` are the requests of the broker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._opaques = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Command]] = {}
        self.asked: asyncio.Queue[Command] = asyncio.Queue()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        frames = FrameReader()
        while data := await self._reader.read(65_536):
            for command in frames.feed(data):
                if command.is_response:
                    self._answers.pop(command.opaque).set_result(command)
                else:
                    self.asked.put_nowait(command)

    async def ask(self, code: int, body: bytes = b"", **fields: object) -> Command:
        opaque = next(self._opaques)
        answer = self._answers[opaque] = asyncio.get_running_loop().create_future()
        values = {name: str(value) for name, value in fields.items()}
        self._writer.write(encode_frame(Command(code=code, opaque=opaque, ext_fields=values, body=body)))
        async with asyncio.timeout(WITHIN_S):
            return await answer

    @classmethod
    async def connect(cls, address: str) -> TransactionClient:
        host, _, port = address.rpartition(":")
        client = cls(*await asyncio.open_connection(host, int(port)))
        await client.sign_on()
        return client

    async def sign_on(self) -> None:
        data = HeartbeatData(client_id="shop", producer_data_set=[ProducerData(group_name=GROUP)])
        await self.ask(RequestCode.HEART_BEAT, write_body(data))

    async def half(self, body: bytes) -> Command:
        properties = encode_properties({"TRAN_MSG": "true", "PGROUP": GROUP, "UNIQ_KEY": body.hex()})
        values = (GROUP, TOPIC, "TBW102", 1, 0, 4, time.time_ns() // 1_000_000, 0, properties)
        return await self.ask(RequestCode.SEND_MESSAGE_V2, body, **dict(zip("abcdefghi", values, strict=True)))

    async def end(self, queue_offset: str, commit_log_offset: int, decision: int) -> int:
        answer = await self.ask(
            RequestCode.END_TRANSACTION,
            producerGroup=GROUP,
            tranStateTableOffset=queue_offset,
            commitLogOffset=commit_log_offset,
            commitOrRollback=decision,
            msgId="",
        )
        return answer.code

    async def end_sent(self, sent: Command, decision: int) -> int:
        place = decode_offset_message_id(sent.ext_fields["msgId"])[1]
        return await self.end(sent.ext_fields["queueOffset"], place, decision)

    async def end_asked(self, check: Command, decision: int) -> int:
        fields = check.ext_fields
        return await self.end(fields["tranStateTableOffset"], int(fields["commitLogOffset"]), decision)

    async def pull(self) -> list[StoredMessage]:
        answer = await self.ask(
            RequestCode.PULL_MESSAGE,
            consumerGroup="g",
            topic=TOPIC,
            queueId=0,
            queueOffset=0,
            maxMsgNums=32,
            sysFlag=4,
            commitOffset=0,
            suspendTimeoutMillis=0,
            subscription="*",
            subVersion=0,
        )
        return decode_messages(answer.body) if answer.code == ResponseCode.SUCCESS else []

    async def close(self) -> None:
        self._reading.cancel()
        self._writer.close()
        await asyncio.gather(self._reading, return_exceptions=True)
