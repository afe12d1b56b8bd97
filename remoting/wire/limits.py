"""Every limit of the wire: name, unit, reason."""

from __future__ import annotations

# Netty's LengthFieldBasedFrameDecoder in both Java ends; counts the four length bytes as well.
FRAME_BYTES_MAX = 16_777_216
# Lenient parsing is slow: only headers that real clients could send get it (32 KiB of properties, every byte escaped).
LENIENT_HEADER_BYTES_MAX = 256 * 1024
# Four times the largest properties, every byte escaped; no client has longer headers.
HEADER_BYTES_MAX = 1024 * 1024
# A batch costs by the message, not by the byte; RocketMQ's clients send smaller ones.
BATCH_MESSAGES_MAX = 10_000
# About 8,000 tags, which take about 20 ms to parse, with every pull that carries them.
TAG_EXPRESSION_CHARS_MAX = 65_536
# The same for heartbeats; those of real clients are standard JSON.
LENIENT_BODY_BYTES_MAX = 128 * 1024
# `maxMessageSize` of clients and brokers.
BODY_BYTES_MAX = 4 * 1024 * 1024
# The stored layout writes the length as a signed 16-bit number.
PROPERTIES_BYTES_MAX = 32_767
# TopicValidator; retry and DLQ topics carry a group name behind a prefix.
TOPIC_CHARS_MAX = 127
RETRY_TOPIC_CHARS_MAX = 255
GROUP_CHARS_MAX = 120
# Clients compress bodies from here on (`compressMsgBodyOverHowmuch`).
COMPRESS_BODY_BYTES_MIN = 4096
# A decompressed body may not be larger than a frame could ever carry.
DECOMPRESSED_BODY_BYTES_MAX = FRAME_BYTES_MAX
# What one pull answers at most.
PULL_MESSAGES_MAX = 32
PULL_BYTES_MAX = 262_144
