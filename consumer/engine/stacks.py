"""What every thread and task of this process does now, as text (Java's `UtilAll.jstack`)."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback

# Threads and tasks, and frames of each; an answer of some hundred KiB at most.
STACKS_MAX = 500
FRAMES_MAX = 60


def stacks() -> str:
    """Returns a paragraph for each thread, then for each task of the running loop: its name, then its frames."""
    frames = sys._current_frames()
    parts = [
        _paragraph(f"{thread.name}  TID: {thread.ident} STATE: {_state(thread)}", traceback.extract_stack(frame))
        for thread in threading.enumerate()
        if (frame := frames.get(thread.ident or 0)) is not None
    ]
    for task in asyncio.all_tasks():
        own = task.get_stack(limit=FRAMES_MAX)
        lines = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in own)
        parts.append(_paragraph(f"task {task.get_name()}", lines))
    return "\n".join(parts[:STACKS_MAX])


def _state(thread: threading.Thread) -> str:
    return "DAEMON" if thread.daemon else "RUNNABLE"


def _paragraph(head: str, frames: traceback.StackSummary) -> str:
    lines = [f"    {frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames[-FRAMES_MAX:])]
    return "\n".join([head, *lines, ""])
