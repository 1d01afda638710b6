#!/usr/bin/python3
"""ComfyUI's front end, unmodified, over `heddle serve`, in a headless Chromium: what a person does with it.

  front_end_test.py PROGRAM GRAPHS FRONT_END [--screenshots FOLDER]

GRAPHS: the folder of the shipped workflows and their model. FRONT_END: a folder with the PyPI package
comfyui-frontend-package 1.58.1. Needs Debian's chromium, chromium-driver and python3-selenium; where one of these is missing it
says so and passes.
"""

import argparse
import base64
import json
import pathlib
import shutil
import tempfile

import browser
from browser import By, says, skip
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

LISTENED_TO = ["execution_start", "progress", "executed", "b_preview", "execution_success", "execution_error",
               "execution_interrupted"]
# What the front end asks for although it need not be there, and what it asks of other sites.
MAY_BE_MISSING = ["/user.css", "/api/userdata", "/templates/index_logo.json", "https://"]


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("program", "graphs", "front_end"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    return parser.parse_args()


args = arguments()
if not (args.front_end / "comfyui_frontend_package/static/index.html").exists():
    skip("comfyui-frontend-package is not installed")


def by_test_id(name):
    return f"[data-testid={name}]"


def by_label(name):
    return f"[aria-label='{name}']"


def template_package(folder):
    """Packages as pip installs them: the front end, and one of templates with a workflow that the small model draws."""
    templates = folder / "comfyui_workflow_templates_small/templates"
    templates.mkdir(parents=True)
    (folder / "comfyui_frontend_package").symlink_to((args.front_end / "comfyui_frontend_package").resolve())
    flow = json.loads((args.graphs / "saved_form.json").read_text())
    for node in flow["nodes"]:
        if node["type"] == "KSampler":
            node["widgets_values"][2] = 6  # steps
    (templates / "small.json").write_text(json.dumps(flow))
    shutil.copy(args.graphs / "gallery/saved_form.png", templates / "small-1.png")
    (templates / "index.json").write_text(json.dumps([{
        "moduleName": "default", "title": "Small", "type": "image", "templates": [{
            "name": "small", "title": "A small scene", "mediaType": "image", "mediaSubtype": "png",
            "description": "Drawn by the model that ships."}]}]))
    return folder


class Server(browser.Server):
    def __init__(self, folder):
        super().__init__(args.program, args.graphs, folder, "--front-end", template_package(folder / "pip"))

    def ended(self, status="success"):
        return [job for job in self.get("/history").values() if job["status"]["status_str"] == status]


class Page(browser.Browser):
    def opened(self):
        self.until("the canvas", lambda: self.js("return !!(window.app && app.canvas && app.graph)"))
        self.js("""window.seen = [];
            for (const type of arguments[0]) app.api.addEventListener(type, () => seen.push(type));""", LISTENED_TO)

    def seen(self, *types):
        return all(type in self.js("return seen") for type in types)

    def nodes(self):
        return self.js("return app.graph._nodes.map(node => node.type)")

    def widget(self, node, name):
        return self.js("""const node = app.graph._nodes.find(node => node.title === arguments[0]);
            return node && node.widgets.find(widget => widget.name === arguments[1]).value;""", node, name)

    def set_widget(self, node, name, value):
        self.js("""const node = app.graph._nodes.find(node => node.title === arguments[0]);
            const widget = node.widgets.find(widget => widget.name === arguments[1]);
            widget.value = arguments[2]; widget.callback?.(arguments[2]);""", node, name, value)

    def complaints(self):
        """What the browser could not load, and what failed in the page."""
        lines = [line for level, line in super().complaints() if level == "SEVERE"]
        return [line for line in lines if not any(part in line for part in MAY_BE_MISSING)]


def draw_a_template(page, server):
    page.opened()
    page.find(by_test_id("template-workflow-small"), "the dialog of templates at the first visit")
    page.shot("templates")
    page.click(by_test_id("template-workflow-small"))
    page.until("the template's nodes", lambda: "KSampler" in page.nodes())
    says(page.widget("prompt", "text").startswith("an orange mushroom"), "a template is loaded")
    says(not page.js("return app.graph._nodes.some(node => node.has_errors)"), "all its nodes are known")
    prompt = page.until("the prompt's text", lambda: next(
        e for e in page.driver.find_elements(By.TAG_NAME, "textarea") if e.get_attribute("value").startswith("an orange")))
    prompt.click()
    prompt.send_keys(Keys.CONTROL, "a")
    prompt.send_keys("a red house on the left")
    page.click(by_test_id("queue-button"))
    page.until("progress in the title", lambda: "%]" in page.driver.title and "KSampler" in page.driver.title)
    page.until("a preview", lambda: page.seen("progress", "b_preview"))
    page.until("the end", lambda: page.seen("execution_start", "executed", "execution_success"))
    image = page.until("the picture at its node", lambda: page.js("""
        const node = app.graph._nodes.find(node => node.type === 'SaveImage');
        return node.imgs && node.imgs[0].naturalWidth ? [node.imgs[0].naturalWidth, node.imgs[0].naturalHeight] : null;"""))
    page.shot("drawn")
    says(image == [256, 256], "a changed prompt is drawn, with progress, previews and the picture")
    jobs = server.ended()
    says(len(jobs) == 1 and jobs[0]["prompt"][2]["2"]["inputs"]["text"] == "a red house on the left",
         "the server ran what was typed")


def open_from_queue(page):
    page.click(by_test_id("queue-overlay-toggle"))
    page.js("app.graph.clear()")

    def chosen():
        picture = page.find(by_test_id("job-assets-list")).find_element(By.TAG_NAME, "img")
        ActionChains(page.driver).context_click(picture).perform()
        page.driver.find_element(By.XPATH, "//*[@role='menuitem' and contains(., 'Open as workflow')]").click()
        return True
    page.until("the job's menu", chosen)
    page.until("the picture's workflow", lambda: page.widget("prompt", "text") == "a red house on the left")
    page.shot("opened")
    says(True, "the picture's workflow is opened from the queue")


def drop_picture(page, folder):
    picture = next((folder / "output").glob("*.png"))
    page.js("app.graph.clear()")
    says(page.nodes() == [], "the graph is empty")
    page.js("""const bytes = Uint8Array.from(atob(arguments[0]), c => c.charCodeAt(0));
        const transfer = new DataTransfer();
        transfer.items.add(new File([bytes], 'dropped.png', {type: 'image/png'}));
        const canvas = document.querySelector('#graph-canvas');
        for (const type of ['dragenter', 'dragover', 'drop'])
          canvas.dispatchEvent(new DragEvent(type, {dataTransfer: transfer, bubbles: true, cancelable: true,
                                                    clientX: 800, clientY: 500}));""",
            base64.b64encode(picture.read_bytes()).decode())
    page.until("the dropped picture's workflow", lambda: page.widget("prompt", "text") == "a red house on the left")
    says(True, "a dropped picture brings its workflow")


def cancel_one(page, server):
    page.js("seen.length = 0")
    page.set_widget("sampler", "steps", 2000)
    page.click(by_test_id("queue-button"))
    page.until("progress", lambda: page.seen("progress"))
    page.click(by_label("Cancel current run"))
    page.until("the end of the job", lambda: page.seen("execution_interrupted"))
    says(not page.seen("execution_success"), "a running job is cancelled")
    queue = server.get("/queue")
    says(queue == {"queue_running": [], "queue_pending": []}, "nothing of it is left in the queue")


def queue_ten(page, server):
    before = len(server.ended())
    page.set_widget("sampler", "steps", 4)
    page.set_widget("sampler", "control_after_generate", "increment")
    count = page.find("input[aria-label='Batch Count'], [aria-label='Batch Count'] input")
    count.click()
    count.send_keys(Keys.CONTROL, "a")
    count.send_keys("10", Keys.TAB)
    page.click(by_test_id("queue-button"))
    page.until("ten jobs", lambda: len(server.ended()) > before
               and len(server.get("/queue")["queue_pending"]) + len(server.get("/queue")["queue_running"]) > 0)
    page.driver.refresh()
    page.opened()
    page.until("the workflow after a reload", lambda: page.widget("prompt", "text") == "a red house on the left")
    page.until("messages after a reload", lambda: page.seen("execution_success") or page.seen("progress"))
    page.shot("reloaded")
    page.until("the last job", lambda: len(server.ended()) == before + 10)
    seeds = {job["prompt"][2]["5"]["inputs"]["seed"] for job in server.ended()[-10:]}
    says(len(seeds) == 10, "ten jobs are queued and done, with a reload in between")


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    server = page = None
    try:
        server = Server(folder)
        page = Page(server.url, args.screenshots)
        draw_a_template(page, server)
        open_from_queue(page)
        drop_picture(page, folder)
        cancel_one(page, server)
        queue_ten(page, server)
        says(not (lines := page.complaints()), f"the browser has nothing to complain of {lines or ''}".rstrip())
        page.driver.quit()
        page = None
        says(server.stop() == 0, "the server ends")
        server = None
    finally:
        if page:
            print("\n".join(page.complaints()))
            page.driver.quit()
        if server:
            server.process.kill()
            print(server.log.read_text())
        shutil.rmtree(folder, ignore_errors=True)


main()
