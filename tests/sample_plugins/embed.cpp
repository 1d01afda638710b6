#include <heddle/engine.hpp>
#include <iostream>

void show(const heddle::Event& e) {
  if (e.kind == heddle::Event::Kind::node_progress)
    std::cerr << e.node << ' ' << int(e.fraction * 100) << "%\r";
}

int main() {
  heddle::Engine engine;
  heddle::Workflow flow = engine.load("graphs/scene.json");
  flow.set("prompt.text", "a lighthouse at sea");  // a node by its title, id, or a class used once
  std::cout << engine.plan(flow);                  // what runs where, before anything runs
  heddle::Run run = engine.start(flow, {.observer = show, .fetch = {"decode.IMAGE"}});
  run.wait().image("decode.IMAGE").save_ppm("lighthouse.ppm");
}
