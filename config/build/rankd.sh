#!/bin/sh
# Starts rankd on the Node.js in this folder. Works through symbolic links to this file.
here=$(dirname -- "$(readlink -f -- "$0")")
exec "$here/runtime/node" "$here/bin/rankd.js" "$@"
