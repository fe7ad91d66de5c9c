"""The check of a connecting process: every user of the machine can reach a server's address."""

import os
import socket
import struct

from assay.shared import PROTOCOL

VERSION = PROTOCOL  # of the messages between servers and slots ("v")
CREDENTIALS = struct.Struct("3i")  # of SO_PEERCRED: process, user, group


def is_ours(connection: socket.socket) -> bool:
    """Whether the process at the other end belongs to the same user."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    return CREDENTIALS.unpack(credentials)[1] == os.getuid()
