"""A little SSH server on the loopback: takes one key, runs what it is told as a process, or misbehaves on request."""

import contextlib
import socket
import subprocess
import threading

import paramiko

_GONE = (paramiko.SSHException, EOFError, OSError)
"""What the server meets when a client has had enough."""


class _Door(paramiko.ServerInterface):
    def __init__(self, server):
        self._server = server

    def check_auth_publickey(self, username, key):
        good = username == "ops" and key.get_base64() == self._server.user_key
        if good:
            self._server.count("logging_in", -1)
        return paramiko.AUTH_SUCCESSFUL if good else paramiko.AUTH_FAILED

    def get_allowed_auths(self, username):
        return "publickey"

    def get_banner(self):
        return (self._server.banner, "en") if self._server.banner else (None, None)

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        threading.Thread(target=self._server.run, args=(channel, command), daemon=True).start()
        return True


class Sshd:
    """``behaviour`` is one of the methods: what happens to a connection that comes in."""

    def __init__(self, host_key, user_key, place=("127.0.0.1", 0)):
        self.host_key, self.user_key = host_key, user_key
        self.connections = 0
        self.logging_in = 0  # connections of :meth:`crowded` that are not logged in yet
        self.max_startups = 0
        self.dropped = 0
        self.drop_first = 0
        self.behaviour = self.serve
        self.canned = None
        """What every command prints, in place of being run; with an Ellipsis behind it the connection ends there."""
        self.banner = ""  # what it says before login
        self.deaf = False  # what is canned is printed without the input being read
        self._socket = socket.create_server(place)
        self.port = self._socket.getsockname()[1]
        self._open = []
        self._counting = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def count(self, what, more):
        """Add to a number that connections share."""
        with self._counting:
            setattr(self, what, getattr(self, what) + more)
            return getattr(self, what)

    def _accept(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._guarded, args=(connection,), daemon=True).start()

    def _guarded(self, connection):
        with contextlib.suppress(*_GONE):
            self.behaviour(connection)

    def serve(self, connection):
        transport = paramiko.Transport(connection)
        transport.add_server_key(self.host_key)
        self._open.append(transport)
        transport.start_server(server=_Door(self))
        self._open.append(transport.accept(30))  # a channel that nobody holds is closed

    def crowded(self, connection):
        """Drops connections beyond MaxStartups, as sshd does."""
        if self.count("logging_in", 1) > self.max_startups:
            self.count("logging_in", -1)
            self.count("dropped", 1)
            connection.close()
        else:
            self.serve(connection)

    def moody(self, connection):
        """Drops the first few."""
        if self.connections <= self.drop_first:
            self.dropped += 1
            connection.close()
        else:
            self.serve(connection)

    def silent(self, connection):
        """Takes the connection and says nothing, as a node whose sshd hangs."""

    def rude(self, connection):
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.close()

    def run(self, channel, command):
        """Run a command with the channel as its stdin, stdout and stderr."""
        if self.canned is not None:
            self._print(channel)
            return
        process = subprocess.Popen(
            ["/bin/sh", "-c", command.decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._open.append(process)
        feed = threading.Thread(target=self._feed, args=(channel, process), daemon=True)
        feed.start()
        errors = threading.Thread(target=self._pump, args=(process.stderr, channel.sendall_stderr), daemon=True)
        errors.start()
        self._pump(process.stdout, channel.sendall)
        errors.join()
        feed.join(10)  # the end of the input shows that the client has been told that its command runs
        with contextlib.suppress(*_GONE):
            channel.send_exit_status(max(0, process.wait()))
            channel.close()

    def _print(self, channel):
        with contextlib.suppress(*_GONE):
            while channel.recv(1 if self.deaf else 65536) and not self.deaf:  # at least a byte: the client has begun
                pass
            text, *more = self.canned
            channel.sendall(text)
            if more:
                channel.get_transport().close()
            channel.send_exit_status(0)
            channel.close()

    @staticmethod
    def _feed(channel, process):
        with contextlib.suppress(*_GONE):
            while chunk := channel.recv(65536):
                process.stdin.write(chunk)
                process.stdin.flush()
            process.stdin.close()

    @staticmethod
    def _pump(stream, send):
        with contextlib.suppress(*_GONE):
            while chunk := stream.read1(65536):
                send(chunk)

    def close(self):
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # else the thread in accept() takes one more
        self._socket.close()
        for item in self._open:
            if isinstance(item, subprocess.Popen):
                item.kill()
                item.wait()
            elif item is not None:
                item.close()
