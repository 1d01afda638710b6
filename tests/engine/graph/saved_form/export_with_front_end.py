#!/usr/bin/env python3
"""Writes what ComfyUI's own front end exports (API form) for workflows in the form that it saves.

  pip install comfyui-frontend-package==1.58.1 playwright aiohttp;  apt-get install chromium
  export_with_front_end.py OBJECT_INFO.json... --out FOLDER --workflows WORKFLOW.json...

The front end runs unmodified in a headless Chromium, over a server that knows as much of ComfyUI's
as it needs to start. Of a class that is in several OBJECT_INFO files, the last definition holds. FOLDER
gets a file of the same name for each workflow, {id: {class_type, inputs, _meta}}; stdout a line with its name and a hash,
which is what tests/golden/saved_form/exports.txt has of ComfyUI's templates. Numbers are JavaScript's: 5.0 is
written 5, and whole numbers beyond 2^53 are rounded. Math.random() always gives 0, so that of
{a|b|c} the first is taken, and seeds of controls that run before are repeatable.
"""

import argparse
import asyncio
import importlib.util
import json
import pathlib
import struct

from aiohttp import WSMsgType, web
from playwright.async_api import async_playwright

ANSWERS = {
    "users": {"storage": "server", "migrated": True},
    "i18n": {},
    "extensions": [],
    "userdata": [],
    "experiment/models": [],
    "embeddings": [],
    "workflow_templates": {},
    "global_subgraphs": {},
    "node_replacements": {},
    "features": {"supports_preview_metadata": True},
    "queue": {"queue_running": [], "queue_pending": []},
    "history": {},
    "jobs": {"jobs": [], "pagination": {"offset": 0, "limit": 0, "total": 0, "has_more": False}},
    "system_stats": {"system": {"os": "posix", "ram_total": 1, "ram_free": 1, "comfyui_version": "0.43.0",
                                "required_frontend_version": None, "python_version": "3", "pytorch_version": "2",
                                "embedded_python": False, "argv": []}, "devices": []},
}
SETTINGS = {"Comfy.TutorialCompleted": True, "Comfy.InstalledVersion": "1.58.1", "Comfy.Release.Status": "skip",
            "Comfy.Workflow.ShowMissingNodesWarning": False, "Comfy.Workflow.ShowMissingModelsWarning": False,
            "Comfy.Validation.Workflows": False, "Comfy.Locale": "en"}


def socket_only(template):
    """The inputs of an autogrow template never have widgets; ComfyUI says so, the files do not."""
    for section in template.get("input", {}).values():
        for spec in section.values():
            if len(spec) > 1:
                spec[1]["forceInput"] = True


def definitions(files):
    merged = {}
    for file in files:
        merged.update(json.loads(pathlib.Path(file).read_text()))
    for name, node in merged.items():
        node["display_name"] = node.get("display_name") or name
        node.setdefault("description", "")
        for section in ("required", "optional"):
            for spec in node["input"].get(section, {}).values():
                if spec[0] == "COMFY_AUTOGROW_V3":
                    socket_only(spec[1]["template"])
    return merged


def server(object_info):
    static = pathlib.Path(importlib.util.find_spec("comfyui_frontend_package").origin).parent / "static"

    async def api(request):
        path = request.match_info["path"].strip("/")
        if path == "object_info":
            return web.json_response(object_info)
        if path == "settings":
            return web.json_response(SETTINGS) if request.method == "GET" else web.Response()
        if path in ANSWERS:
            return web.json_response(ANSWERS[path])
        return web.json_response({}, status=404)

    async def socket(request):
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        await answer.send_json({"type": "status", "data": {"status": {"exec_info": {"queue_remaining": 0}}, "sid": "x"}})
        async for message in answer:
            if message.type == WSMsgType.ERROR:
                break
        return answer

    app = web.Application(client_max_size=2**28)
    app.router.add_get("/ws", socket)
    app.router.add_route("*", "/api/{path:.*}", api)
    app.router.add_get("/", lambda _: web.FileResponse(static / "index.html"))
    app.router.add_static("/", static)
    return app


# A value that Chromium cannot clone (a proxy of Vue) would keep the front end from opening the file.
PREPARE = """
Math.random = () => 0;
const clone = window.structuredClone;
window.structuredClone = (value, options) => {
  try { return clone(value, options); } catch { return JSON.parse(JSON.stringify(value)); }
};
"""
EXPORT = """async (text) => {
  await window.app.loadGraphData(JSON.parse(text), true, true, null, {});
  await new Promise((done) => setTimeout(done, 300));
  const prompt = await window.app.graphToPrompt();
  return JSON.stringify(prompt.output);
}"""


def canonical(value):
    """Bytes that are the same for equal values: numbers as doubles, members by name."""
    if value is None or isinstance(value, bool):
        return {None: b"n", True: b"t", False: b"f"}[value]
    if isinstance(value, (int, float)):
        return struct.pack(">d", value).hex().encode()
    if isinstance(value, str):
        return b"s%d:%b" % (len(value.encode()), value.encode())
    if isinstance(value, list):
        return b"[" + b"".join(map(canonical, value)) + b"]"
    members = sorted((key.encode(), key) for key in value)
    return b"{" + b"".join(canonical(key) + canonical(value[key]) for _, key in members) + b"}"


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


async def export(page, file, out):
    text = file.read_text()
    workflow = await page.evaluate(EXPORT, text)
    nodes = json.loads(workflow)
    (out / file.name).write_text(json.dumps(nodes, indent=1, ensure_ascii=False) + "\n")
    return fnv1a(canonical(nodes))


async def run(arguments):
    runner = web.AppRunner(server(definitions(arguments.object_info)))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    arguments.out.mkdir(parents=True, exist_ok=True)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=arguments.chromium, args=["--no-sandbox"])
        page = await browser.new_page()
        await page.add_init_script(PREPARE)
        if arguments.verbose:
            page.on("console", lambda message: print("  page:", message.text[:300]))
            page.on("pageerror", lambda error: print("  page error:", str(error)[:300]))
        await page.goto(f"http://127.0.0.1:{port}/")
        await page.wait_for_function("window.app && window.app.graph && window.app.extensionManager", timeout=120_000)
        await page.wait_for_timeout(3000)
        for file in arguments.workflows:
            try:
                print(file.name, await export(page, file, arguments.out), flush=True)
            except Exception as error:  # noqa: BLE001 (told and gone on with, the others are wanted, too)
                print(file.name, "FAILED:", str(error)[:400], flush=True)
        await browser.close()
    await runner.cleanup()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("object_info", nargs="+")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--workflows", nargs="+", type=pathlib.Path, required=True)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
