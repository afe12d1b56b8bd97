"""The response to CONSUME_MESSAGE_DIRECTLY (309): what a member's listener made of one message."""

from __future__ import annotations

from remoting.wire.bodies.document import Document


class ConsumeDirectlyResult(Document, kw_only=True):
    """`ConsumeMessageDirectlyResult`. `remark`: the exception's text.

    `consume_result`: CR_SUCCESS, CR_LATER, CR_ROLLBACK, CR_COMMIT, CR_THROW_EXCEPTION or CR_RETURN_NULL; None where the
    client named another.
    """

    auto_commit: bool = True
    consume_result: str | None = None
    order: bool = False
    remark: str | None = None
    spent_time_mills: int = 0
