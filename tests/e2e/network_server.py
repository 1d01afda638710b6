"""A server as a program, for tests that reach it over a network: started, asked, ended. Imported by tests whose
first arguments are PROGRAM SAMPLE_PLUGINS."""
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM, SAMPLES = (os.path.realpath(path) for path in sys.argv[1:3])
FOLDER = tempfile.TemporaryDirectory()
HOME = FOLDER.name
FAILURES = []

SUM = {'1': {'class_type': 'test.add', 'inputs': {'a': 2, 'b': 3}},
       '3': {'class_type': 'test.keep', 'inputs': {'value': ['1', 0]}}}


def check(is_so, what):
    if not is_so:
        FAILURES.append(what)
        print('FAILED:', what)


def environment():
    clean = {key: value for key, value in os.environ.items() if not key.startswith('HEDDLE_')}
    return clean | {'HOME': HOME, 'XDG_STATE_HOME': HOME + '/state', 'XDG_CACHE_HOME': HOME + '/cache',
                    'XDG_CONFIG_HOME': HOME + '/config'}


class Server:
    """Ends with the block that it is used in."""

    def __init__(self, *options):
        self.log = open(os.path.join(HOME, 'log'), 'w+')
        command = [PROGRAM, 'serve', '--json', '--port', '0', '--devices', 'cpu', '--plugins', SAMPLES, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        stdin=subprocess.DEVNULL, env=environment())
        self.url = ''
        if select.select([self.process.stdout], [], [], 120)[0]:
            line = self.process.stdout.readline()
            self.url = json.loads(line)['url'] if line else ''
        if not self.url:
            raise RuntimeError(f'{command}: no address: {self.lines()}')

    @property
    def port(self):
        return int(self.url.rsplit(':', 1)[1])

    def lines(self):
        with open(self.log.name) as log:
            return log.read().splitlines()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        check(self.process.wait(120) == 0, f'the server ends: {self.lines()}')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        self.process.stdout.close()
        self.log.close()


def refused(text, *options):
    done = subprocess.run([PROGRAM, 'serve', '--port', '0', *options], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120, env=environment())
    check(done.returncode != 0 and text in done.stderr, f'{options}: {text!r} is said: {done.stderr}')


def ask(connection, method, path, body=None, headers=()):
    connection.request(method, path, body if body is None else json.dumps(body), dict(headers))
    answer = connection.getresponse()
    content = answer.read()
    return answer, content


def make_certificate(name='localhost'):
    names = f'subjectAltName=DNS:{name},IP:127.0.0.1'
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
                    '-days', '2', '-subj', '/CN=localhost', '-addext', names, '-keyout', HOME + '/key.pem',
                    '-out', HOME + '/cert.pem'], check=True, capture_output=True)


def read_message(reader):
    """One frame of a WebSocket's server, which does not mask: a whole message where that is short."""
    head = reader.read(2)
    size = head[1] & 127
    if size == 126:
        size = int.from_bytes(reader.read(2), 'big')
    elif size == 127:
        size = int.from_bytes(reader.read(8), 'big')
    return reader.read(size)


class LocalConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('localhost', timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(120)
        self.sock.connect(self.path)


class TlsLocalConnection(LocalConnection):
    """Over the Unix socket of `program`, which may have yet to listen there."""

    def __init__(self, path, context, program):
        super().__init__(path)
        self.context = context
        self.program = program

    def connect(self):
        while not self.try_to_connect():
            if self.program.poll() is not None:
                raise RuntimeError(f'{self.path}: who listens there has ended')
            time.sleep(0.05)
        self.sock = self.context.wrap_socket(self.sock, server_hostname='studio.example')

    def try_to_connect(self):
        try:
            super().connect()
            return True
        except (FileNotFoundError, ConnectionRefusedError):
            return False
