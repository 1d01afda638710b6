"""PromptServer, as far as packs need it to be loaded: nobody serves their routes, and nobody listens to what they send."""


class _Routes:
    def _route(self, path, **_):
        return lambda handler: handler

    get = post = put = delete = patch = head = static = _route


class PromptServer:
    instance = None

    def __init__(self):
        self.routes, self.client_id, self.last_node_id = _Routes(), None, None
        self.supports, self.number = [], 0

    def send_sync(self, event, data, sid=None):
        """To nobody."""

    def add_on_prompt_handler(self, handler):
        """Never called."""

    async def send(self, event, data, sid=None):
        """To nobody."""


PromptServer.instance = PromptServer()
