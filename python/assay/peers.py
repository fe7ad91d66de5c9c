"""Checks who connects to a server: every user of the machine can reach an abstract socket address."""

import os
import socket
import struct

VERSION = 1  # protocol of messages ("v"): kProtocol of src/lane/message.h
CREDENTIALS = struct.Struct("3i")  # of SO_PEERCRED: process, user, group


def is_ours(connection: socket.socket) -> bool:
    """Whether a process of our own user is at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    return CREDENTIALS.unpack(credentials)[1] == os.getuid()
