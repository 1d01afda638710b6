#!/usr/bin/env python3
"""`heddle serve` as others reach it: over TLS, over a Unix socket, behind a proxy, under a limit, and what
it logs of them. Usage: network_test.py PROGRAM SAMPLE_PLUGINS"""
import base64
import http.client
import json
import os
import re
import socket
import ssl
import stat
import sys
import warnings

from network_server import FAILURES, HOME, SUM, LocalConnection, Server, ask, check, make_certificate, read_message, refused


def test_tls():
    make_certificate()
    refused('--tls-cert and --tls-key', '--tls-cert', HOME + '/cert.pem')
    refused('no.pem', '--tls-cert', HOME + '/no.pem', '--tls-key', HOME + '/key.pem')
    refused('--tls-key', '--tls-cert', HOME + '/cert.pem', '--tls-key', HOME + '/cert.pem')
    context = ssl.create_default_context(cafile=HOME + '/cert.pem')
    with Server('--tls-cert', HOME + '/cert.pem', '--tls-key', HOME + '/key.pem') as server:
        check(server.url.startswith('https://'), f'the address says so: {server.url}')
        connection = http.client.HTTPSConnection('127.0.0.1', server.port, context=context, timeout=120)
        for _ in range(3):  # one connection, one handshake
            answer, content = ask(connection, 'GET', '/v1/queue')
            check(answer.status == 200 and json.loads(content)['workers'] == 4, 'a request over TLS')
        # Both ways more than one record, and the whole of it.
        large = {'prompt': SUM, 'extra_data': {'extra_pnginfo': {'x': 'y' * 3_000_000}}}
        answer, content = ask(connection, 'POST', '/prompt', large)
        check(answer.status == 200, f'a large body over TLS: {content[:200]}')
        job = json.loads(content)['prompt_id']
        # A body that ends with the connection ends with TLS's farewell: it is no cut.
        answer, content = ask(connection, 'GET', f'/v1/jobs/{job}/events?after=0')
        check(b'"state":"done"' in content, f'events over TLS: {content[-300:]}')
        connection = http.client.HTTPSConnection('127.0.0.1', server.port, context=context, timeout=120)
        answer, content = ask(connection, 'GET', f'/history/{job}')
        check(len(content) > 3_000_000, f'a large answer over TLS: {len(content)}')

        raw = context.wrap_socket(socket.create_connection(('127.0.0.1', server.port), 120),
                                  server_hostname='localhost')
        key = base64.b64encode(os.urandom(16)).decode()
        raw.sendall((f'GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
                     f'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n').encode())
        reader = raw.makefile('rb')
        check(b' 101 ' in reader.readline(), 'a WebSocket over TLS')
        while reader.readline() != b'\r\n':
            pass
        check(json.loads(read_message(reader))['type'] == 'status', 'it says what waits')
        raw.close()

        with socket.create_connection(('127.0.0.1', server.port), 120) as plain:
            try:
                plain.sendall(b'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
                answer = plain.recv(100)
            except OSError:  # it is closed before all has been read
                answer = b''
            check(b'HTTP' not in answer, 'without TLS nobody is answered')
        warnings.simplefilter('ignore', DeprecationWarning)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        try:
            old.wrap_socket(socket.create_connection(('127.0.0.1', server.port), 120)).close()
            check(False, 'TLS 1.1 is refused')
        except OSError:  # ssl.SSLError is one; the server may close before its word is read
            pass
    with Server('--api-key', 'secret', '--tls-cert', HOME + '/cert.pem', '--tls-key', HOME + '/key.pem') as server:
        connection = http.client.HTTPSConnection('127.0.0.1', server.port, context=context, timeout=120)
        answer, _ = ask(connection, 'POST', '/v1/session', {'api_key': 'secret'})
        cookie = answer.getheader('Set-Cookie') or ''
        check(cookie.endswith('; Secure'), f'the cookie stays in TLS: {cookie}')


def test_unix_socket():
    path = HOME + '/serve.sock'
    with Server('--listen', f'unix:{path},127.0.0.1') as server:
        check(server.url == f'unix:{path}', f'the address is the path: {server.url}')
        check(stat.S_IMODE(os.stat(path).st_mode) == 0o600, 'it is its user\'s alone')
        answer, _ = ask(LocalConnection(path), 'GET', '/queue')
        check(answer.status == 200, 'a request over a Unix socket')
        refused('another program listens there', '--listen', f'unix:{path}', '--queue', HOME + '/other.db')
    check(not os.path.exists(path), 'the socket goes with the server')
    with Server('--listen', f'unix:{path}') as server:
        server.process.kill()
        server.process.wait()
    check(os.path.exists(path), 'a killed server leaves its socket')
    with Server('--listen', f'unix:{path}'):
        check(ask(LocalConnection(path), 'GET', '/queue')[0].status == 200, 'which the next one replaces')
    with open(path, 'w') as file:
        file.write('mine')
    refused('something else', '--listen', f'unix:{path}')
    check(open(path).read() == 'mine', 'no other file is replaced')
    os.unlink(path)
    refused('bytes at most', '--listen', 'unix:/' + 'x' * 200)


def test_proxy():
    refused('--trusted-proxy', '--trusted-proxy', 'nobody')
    forwarded = {'X-Forwarded-For': '203.0.113.7', 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'studio.example'}
    options = ('--path-prefix', '/studio/', '--log-requests', '--log-format', 'json', '--api-key', 'secret')
    key = {'Authorization': 'Bearer secret'}
    with Server('--trusted-proxy', '127.0.0.1', *options) as server:
        connection = http.client.HTTPConnection('127.0.0.1', server.port, timeout=120)
        for path in '/studio/v1/queue', '/v1/queue':
            answer, content = ask(connection, 'GET', path, headers=forwarded | key)
            check(answer.status == 200, f'{path} is found: {content[:200]}')
        answer, _ = ask(connection, 'POST', '/studio/v1/session', {'api_key': 'secret'}, forwarded)
        cookie = answer.getheader('Set-Cookie') or ''
        check('; Path=/studio/;' in cookie and cookie.endswith('; Secure'), f'the cookie is for the prefix: {cookie}')
        answer, content = ask(connection, 'POST', '/studio/v1/jobs', {'workflow': SUM}, forwarded | key)
        place = answer.getheader('Location') or ''
        check(place.startswith('/studio/v1/jobs/'), f'where the job is: {place}')
        check(ask(connection, 'GET', place, headers=key)[0].status == 200, 'there it is')
        server.stop()
        told = [json.loads(line) for line in server.lines()]
        peers = {line['request']['peer'] for line in told if 'request' in line}
        check(peers == {'203.0.113.7', '127.0.0.1'}, f'the client is who asks: {peers}')
    with Server(*options) as server:
        connection = http.client.HTTPConnection('127.0.0.1', server.port, timeout=120)
        answer, _ = ask(connection, 'POST', '/v1/session', {'api_key': 'secret'}, forwarded)
        check('Secure' not in (answer.getheader('Set-Cookie') or ''), 'nobody else is believed')
        server.stop()
        told = [json.loads(line) for line in server.lines()]
        check({line['request']['peer'] for line in told if 'request' in line} == {'127.0.0.1'},
              'nor who they say they are')


def test_log_and_limit():
    refused('expected text or json', '--log-format', 'xml')
    with Server('--rate-limit', '5', '--log-requests', '--log-format', 'json') as server:
        connection = http.client.HTTPConnection('127.0.0.1', server.port, timeout=120)
        answers = [ask(connection, 'GET', '/queue', headers={'X-Request-Id': 'mine'})[0]]
        while answers[-1].status == 200 and len(answers) < 1000:
            connection = http.client.HTTPConnection('127.0.0.1', server.port, timeout=120)
            answers.append(ask(connection, 'GET', '/queue')[0])
        check(len(answers) > 5, f'five come through at least: {len(answers)}')
        check(answers[-1].status == 429 and int(answers[-1].getheader('Retry-After')) >= 1, 'then they have to wait')
        ids = [answer.getheader('X-Request-Id') for answer in answers]
        check(ids[0] == 'mine' and len(set(ids)) == len(ids), f'each has an id: {ids}')
        server.stop()
        told = [json.loads(line) for line in server.lines()]
        check(all({'time', 'level', 'message'} <= line.keys() for line in told), f'all lines are JSON: {told}')
        logged = [line['request'] for line in told if 'request' in line]
        check([one['id'] for one in logged] == ids, f'all ids are in the log: {logged}')
        check(logged[-1]['status'] == 429 and logged[0]['method'] == 'GET' and logged[0]['path'] == '/queue', 'with more')
        check(re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', told[0]['time']) is not None, 'and the time')
    with Server('--log-requests') as server:
        ask(http.client.HTTPConnection('127.0.0.1', server.port, timeout=120), 'GET', '/queue')
        server.stop()
        check(any('GET /queue 200' in line for line in server.lines()), f'people can read it: {server.lines()}')


test_tls()
test_unix_socket()
test_proxy()
test_log_and_limit()
sys.exit(1 if FAILURES else 0)
