#!/usr/bin/python3
"""/v1 through a client that is generated from the document of it: what the document says is all that the client knows.

  openapi_client_test.py PROGRAM SAMPLE_PLUGINS

Every operation is called, and answers with a status, a type and members that the document gives.
"""

import json
import os
import sys
import time
import urllib.parse

import network_server as net

SECONDS = 120  # until something has to have happened
WAITS = {'1': {'class_type': 'test.wait', 'inputs': {}}, '2': {'class_type': 'test.keep', 'inputs': {'value': ['1', 0]}}}


class Client:
    """A method for each operationId: parameters by name ('-' is '_'), the body as `body`."""

    def __init__(self, document, call):
        self.document, self.call, self.called = document, call, set()
        for path, item in document['paths'].items():
            for method, operation in item.items():
                if method == 'parameters':
                    continue
                parameters = [self.found(p) for p in [*item.get('parameters', []), *operation.get('parameters', [])]]
                setattr(self, operation['operationId'], self.made(method.upper(), path, operation, parameters))

    def found(self, thing):
        while '$ref' in thing:
            name = thing['$ref'].removeprefix('#/').split('/')
            thing = self.document
            for part in name:
                thing = thing[part]
        return thing

    def made(self, method, path, operation, parameters):
        known = {p['name'].replace('-', '_'): p for p in parameters}

        def operate(body=None, stream=False, **given):
            assert set(given) <= set(known), f"{operation['operationId']} has no {set(given) - set(known)}"
            query, headers, target = {}, {}, path
            for name, parameter in known.items():
                if name not in given:
                    assert not parameter.get('required'), f"{operation['operationId']} needs {name}"
                elif parameter['in'] == 'path':
                    target = target.replace('{%s}' % parameter['name'], urllib.parse.quote(str(given[name]), safe=''))
                elif parameter['in'] == 'query':
                    query[parameter['name']] = given[name]
                else:
                    headers[parameter['name']] = str(given[name])
            if body is not None:
                assert 'requestBody' in operation, f"{operation['operationId']} takes no body"
                self.hold(body, next(iter(operation['requestBody']['content'].values()))['schema'], 'body')
            elif 'requestBody' in operation:
                assert not operation['requestBody'].get('required'), f"{operation['operationId']} needs a body"
            if query:
                target += '?' + urllib.parse.urlencode(query)
            status, kind, text = self.call(method, target, body, headers, stream)
            answer = operation['responses'].get(str(status))
            if answer is None:
                answer = self.found(operation['responses']['default'])
            content = self.found(answer).get('content', {})
            assert (kind in content) if content else not text, f'{method} {target}: {status} {kind}, expected {list(content)}'
            if kind == 'application/json' and not stream:
                text = json.loads(text)
                self.hold(text, content[kind]['schema'], operation['operationId'])
            if status < 300:
                self.called.add(operation['operationId'])
            return status, text
        return operate

    def hold(self, value, schema, where):
        """That the value is as the schema says, as far as types and members go."""
        schema = self.found(schema)
        kinds = {'object': dict, 'array': list, 'string': str, 'integer': int, 'number': (int, float), 'boolean': bool,
                 'null': type(None)}
        named = schema.get('type')
        types = [named] if isinstance(named, str) else named
        if types:
            fits = [t for t in types if isinstance(value, kinds[t]) and (t == 'boolean') == isinstance(value, bool)]
            assert fits, f'{where}: {value!r} is no {named}'
        if 'enum' in schema:
            assert value in schema['enum'], f'{where}: {value!r}'
        for other in ('anyOf', 'oneOf'):
            if other in schema:
                assert any(self.holds(value, one, where) for one in schema[other]), f'{where}: {value!r}'
        if isinstance(value, dict):
            members = schema.get('properties', {})
            assert set(schema.get('required', [])) <= set(value), f'{where}: {set(schema["required"]) - set(value)} is missing'
            if schema.get('additionalProperties') is False:
                assert set(value) <= set(members), f'{where}: {set(value) - set(members)} is not told'
            for name, member in value.items():
                if name in members:
                    self.hold(member, members[name], f'{where}.{name}')
        if isinstance(value, list) and 'items' in schema:
            for i, one in enumerate(value):
                self.hold(one, schema['items'], f'{where}[{i}]')

    def holds(self, value, schema, where):
        try:
            self.hold(value, schema, where)
            return True
        except AssertionError:
            return False


def caller(server):
    def call(method, target, body, headers, stream):
        connection = net.http.client.HTTPConnection('127.0.0.1', server.port, timeout=SECONDS)
        data = None if body is None else json.dumps(body)
        connection.request(method, target, data, {'Authorization': 'Bearer secret', **headers})
        reply = connection.getresponse()
        # Of what has no end, what is there.
        text = reply.read1(1 << 16).decode() if stream else reply.read()
        connection.close()
        kind = (reply.getheader('Content-Type') or '').split(';')[0]
        return reply.status, kind, text if stream or not kind.startswith('application/json') else text.decode()
    return call


def wait(client, job, *states):
    end = time.monotonic() + SECONDS
    while True:
        told = ok(client.getJob(id=job))
        if told['state'] in states:
            return told
        assert time.monotonic() < end, told
        time.sleep(0.02)


def ok(answer):
    status, content = answer
    assert status < 300, answer
    return content


def submit(client, **body):
    return ok(client.submitJob(body=body))['jobs'][0]['id']


def jobs(client):
    assert ok(client.validateWorkflow(body={'workflow': net.SUM}))['valid']
    ok(client.planWorkflow(body={'workflow': net.SUM}))
    runs = submit(client, workflow=WAITS)
    wait(client, runs, 'running')
    ok(client.pauseJob(id=runs))
    ok(client.resumeJob(id=runs))
    first, last = (submit(client, workflow=net.SUM, tag='t') for _ in range(2))
    ok(client.moveJob(id=last, body={'to': 'front'}))
    assert [job['id'] for job in ok(client.listJobs(tag='t', state='pending'))['jobs']], 'no jobs of the tag'
    assert ok(client.getQueue(limit=1))['running'], 'nothing runs'
    status, error = client.getPreview(id=runs)
    assert status == 404, (status, error)
    ok(client.pauseQueue())
    ok(client.resumeQueue())
    ok(client.cancelJob(id=runs))
    wait(client, runs, 'cancelled')
    for job in (first, last):
        wait(client, job, 'done')
    told = ok(client.followJob(id=first, after=0)).decode()
    assert 'event: node_' in told and '"done"' in told, told
    assert 'id: ' in ok(client.followEvents(after=0, stream=True)), 'no events'
    ok(client.getTrace(id=first))
    again = ok(client.retryJob(id=first))
    again = again['id'] if 'id' in again else again['jobs'][0]['id']
    wait(client, again, 'done')
    ok(client.deleteJob(id=again))
    assert client.getJob(id=again)[0] == 404
    ok(client.cancelJobs(body={'tag': 't'}))


def devices(client):
    device = ok(client.listDevices())['devices'][0]['id']
    ok(client.getDevice(id=device))
    on = {'device': device}
    loaded = ok(client.loadModels(body={**on, 'file': 'diffusers/tiny-scenes'}))['models']
    name = loaded[0]['name']
    ok(client.pinModel(body={**on, 'model': name}))
    ok(client.unpinModel(body={**on, 'model': name}))
    assert ok(client.listModels())['models'], 'no models'
    ok(client.unloadModels(body={'model': name}))
    ok(client.disableDevice(id=device))
    ok(client.enableDevice(id=device))
    ok(client.drainDevice(id=device))
    ok(client.enableDevice(id=device))


def session(client):
    ok(client.getSession())
    ok(client.signIn(body={'api_key': 'secret'}))
    ok(client.signOut())


def main():
    os.environ.pop('HEDDLE_API_KEY', None)
    with net.Server('--api-key', 'secret', '--jobs', '1', '--traces', net.HOME + '/traces') as server:
        call = caller(server)
        document = json.loads(call('GET', '/v1/openapi.json', None, {}, False)[2])
        client = Client(document, call)
        for ask in (client.getOpenApi, client.getLive, client.getReady):
            ok(ask())
        assert 'heddle_jobs' in ok(client.getMetrics()).decode()
        jobs(client)
        devices(client)
        session(client)
        all_of_them = {o['operationId'] for item in document['paths'].values() for m, o in item.items() if m != 'parameters'}
        left = all_of_them - client.called
        assert left <= {'getPreview'}, f'not called: {left}'  # which has none without a picture
        print(f'{len(client.called)} of {len(all_of_them)} operations')
        server.stop()


main()
sys.exit(1 if net.FAILURES else 0)
