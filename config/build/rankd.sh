#!/bin/sh
# Starts rankd on the Node.js in this folder, even if called through a symbolic link.
here=$(dirname -- "$(readlink -f -- "$0")")
exec "$here/runtime/node" "$here/bin/rankd.js" "$@"
