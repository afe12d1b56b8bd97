"""A Django app whose listener takes its time and writes down each message that it has finished."""
