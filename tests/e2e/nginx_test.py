#!/usr/bin/env python3
"""A server behind nginx, as sdk/serve/nginx.conf sets it up: pages, jobs, events, WebSockets, uploads, and who is
told to have asked. Skipped where there is no nginx. Usage: nginx_test.py PROGRAM SAMPLE_PLUGINS SAMPLE_CONF FOLDER
FOLDER: where an nginx is that is not installed; there need be none."""
import base64
import json
import os
import shutil
import ssl
import subprocess
import sys

import network_server as net

CONF = os.path.realpath(sys.argv[3])
NGINX = shutil.which('nginx', path=':'.join((os.environ.get('PATH', ''), '/usr/sbin', sys.argv[4])))


def configured(port, front):
    """The sample, but for its addresses and the files of its certificate."""
    with open(CONF) as file:
        text = file.read()
    for old, new in (('127.0.0.1:8188', f'127.0.0.1:{port}'), ('listen 443 ssl', f'listen unix:{front} ssl'),
                     ('/etc/nginx/heddle.pem', net.HOME + '/cert.pem'), ('/etc/nginx/heddle.key', net.HOME + '/key.pem')):
        net.check(old in text, f'the sample has {old}')
        text = text.replace(old, new)
    folders = ''.join(f'{kind}_temp_path {net.HOME}/{kind};\n'
                      for kind in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
    user = 'user root;\n' if os.geteuid() == 0 else ''
    return (f'{user}daemon off;\nmaster_process on;\nworker_processes 1;\npid {net.HOME}/pid;\nerror_log {net.HOME}/error.log;\n'
            f'events {{ worker_connections 64; }}\nhttp {{\naccess_log off;\n{folders}{text}}}\n')


class Proxy:
    def __init__(self, port):
        self.front = net.HOME + '/front.sock'
        path = net.HOME + '/nginx.conf'
        with open(path, 'w') as file:
            file.write(configured(port, self.front))
        command = [NGINX, '-p', net.HOME, '-e', net.HOME + '/error.log', '-c', path]
        tested = subprocess.run([*command, '-t'], capture_output=True, text=True)
        net.check(tested.returncode == 0, f'nginx takes the sample: {tested.stderr}')
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.context = ssl.create_default_context(cafile=net.HOME + '/cert.pem')

    def connect(self):
        return net.TlsLocalConnection(self.front, self.context, self.process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(120)


def test(server, proxy):
    key = {'Authorization': 'Bearer secret', 'Host': 'studio.example'}
    # What the client says of itself is not believed.
    lies = {'X-Forwarded-For': '1.2.3.4', 'X-Forwarded-Host': 'evil.example'}
    answer, _ = net.ask(proxy.connect(), 'GET', '/studio', headers=key)
    net.check(answer.status == 308 and answer.getheader('Location', '').endswith('/studio/'), 'the folder is found')
    answer, content = net.ask(proxy.connect(), 'GET', '/studio/', headers={'Host': 'studio.example'})
    net.check(answer.status == 200 and b'<html' in content.lower(), f'the page is there: {content[:100]}')
    answer, _ = net.ask(proxy.connect(), 'GET', '/studio/heddle/main.js', headers={'Host': 'studio.example'})
    net.check(answer.status == 200, 'and its parts')
    answer, _ = net.ask(proxy.connect(), 'GET', '/studio/queue', headers={'Host': 'studio.example'})
    net.check(answer.status == 401, 'without a key nobody is answered')
    answer, _ = net.ask(proxy.connect(), 'POST', '/studio/v1/session', {'api_key': 'secret'},
                        {'Host': 'studio.example', 'Origin': 'https://studio.example'})
    cookie = answer.getheader('Set-Cookie') or ''
    net.check('Path=/studio/;' in cookie and cookie.endswith('; Secure'), f'a browser signs in: {answer.status} {cookie}')

    answer, content = net.ask(proxy.connect(), 'POST', '/studio/v1/jobs', {'workflow': net.SUM}, key | lies)
    net.check(answer.status == 201, f'a job: {content[:300]}')
    place = answer.getheader('Location') or ''
    net.check(place.startswith('/studio/v1/jobs/'), f'its place: {place}')
    _, content = net.ask(proxy.connect(), 'GET', place + '/events?after=0', headers=key)
    net.check(b'"state":"done"' in content, f'its events: {content[-200:]}')
    answer, content = net.ask(proxy.connect(), 'GET', '/studio/userdata/a%2Fb.txt', headers=key)
    net.check(answer.status == 404 and b'Not Found' not in content, f'a name with a slash reaches its route: {content[:100]}')
    large = {'prompt': net.SUM, 'extra_data': {'extra_pnginfo': {'x': 'y' * 5_000_000}}}
    answer, content = net.ask(proxy.connect(), 'POST', '/studio/prompt', large, key)
    net.check(answer.status == 200, f'a large body: {content[:200]}')

    connection = proxy.connect()
    connection.connect()
    nonce = base64.b64encode(os.urandom(16)).decode()
    connection.sock.sendall((f'GET /studio/ws?clientId=a HTTP/1.1\r\nHost: studio.example\r\nAuthorization: Bearer secret\r\n'
                             f'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n'
                             f'Sec-WebSocket-Key: {nonce}\r\n\r\n').encode())
    reader = connection.sock.makefile('rb')
    net.check(b' 101 ' in reader.readline(), 'a WebSocket')
    while reader.readline() not in (b'\r\n', b''):
        pass
    while (message := json.loads(net.read_message(reader)))['type'] != 'status' or 'sid' not in message['data']:
        pass  # what is told to all may come first
    net.check(message['data']['sid'] == 'a', 'and its messages')
    reader.close()
    connection.close()

    server.stop()
    told = [json.loads(line)['request'] for line in server.lines() if '"request"' in line]
    # nginx itself is asked over a Unix socket here, which it tells as "unix:".
    net.check({one['peer'] for one in told} <= {'127.0.0.1'}, f'no lie is believed: {told}')
    net.check(all(len(one['id']) == 32 for one in told), f'nginx gives the ids: {told}')


if NGINX is None:
    print('skipped: a server behind nginx: there is no nginx here')
    sys.exit(0)
net.make_certificate('studio.example')
with net.Server('--path-prefix', '/studio', '--trusted-proxy', '127.0.0.1', '--api-key', 'secret', '--log-requests',
                '--log-format', 'json') as running:
    with Proxy(running.port) as between:
        test(running, between)
sys.exit(1 if net.FAILURES else 0)
