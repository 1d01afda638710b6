#!/bin/bash
# The image of sdk/bundle/Containerfile, without a registry: its base is bootstrapped, the image is made with buildah, and a server
# in it draws a picture. By hand, as root, with mmdebstrap, buildah and curl; it needs Debian's packages, and no daemon.
# Usage: container.sh BUNDLE
# BUNDLE: an unpacked bundle.
set -eu
bundle=$(readlink -f "$1")
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
images() { buildah --root "$folder/root" --runroot "$folder/run" --storage-driver vfs "$@"; }

mmdebstrap --quiet --variant=minbase bookworm "$folder/debian.tar"
base=$(images from scratch)
images add --quiet "$base" "$folder/debian.tar" / >/dev/null
images commit --quiet --rm "$base" docker.io/library/debian:bookworm-slim >/dev/null
rm "$folder/debian.tar"
images build --quiet --isolation chroot --pull-never -t heddle -f "$bundle/share/heddle/serve/Containerfile" "$bundle"

container=$(images from --pull-never heddle)
within() { images run --isolation chroot "$container" -- "$@"; }
key=$(within /opt/heddle/bin/heddle key add admin --admin --api-keys /etc/heddle/keys.json 2>/dev/null)
within /opt/heddle/bin/heddle serve --listen 127.0.0.1 --port 18188 --api-keys /etc/heddle/keys.json --models /models >"$folder/said" 2>&1 &
started=$!
url=http://127.0.0.1:18188
for _ in $(seq 300); do
  server=$(pgrep -f '^/opt/heddle/bin/heddle serve --listen 127.0.0.1 --port 18188' || true)
  curl -sf -H "Authorization: Bearer $key" $url/v1/health/ready && break
  sleep 0.2
done
echo
[ "$(curl -s -o /dev/null -w '%{http_code}' $url/queue)" = 401 ] || { echo "FAILED: it asks for no key"; exit 1; }
HEDDLE_API_KEY=$key "$bundle/bin/heddle" submit "$bundle/share/heddle/graphs/scene.json" --wait --server $url
within sh -c '[ "$(id -u)" = 1000 ] && [ -s /var/lib/heddle/output/scene_00001_.png ]' || { echo "FAILED: the picture is not there"; exit 1; }
kill -TERM "$server"
wait "$started" || { echo "FAILED: the server's exit code is $?"; cat "$folder/said"; exit 1; }
server=
echo "all right"
