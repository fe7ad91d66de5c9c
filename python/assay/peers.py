"""Who may talk to a server: its address is in a name space that every user of the machine can reach."""

import os
import socket
import struct

from assay.shared import PROTOCOL

VERSION = PROTOCOL  # of the messages between servers and slots ("v")
CREDENTIALS = struct.Struct("3i")  # of SO_PEERCRED: process, user, group


def is_ours(connection: socket.socket) -> bool:
    """Whether a process of our own user is at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    return CREDENTIALS.unpack(credentials)[1] == os.getuid()
