#!/bin/sh
# Starts rankd on the Node.js in this folder. A link to this file may be on the path.
here=$(dirname -- "$(readlink -f -- "$0")")
exec "$here/runtime/node" "$here/bin/rankd.js" "$@"
