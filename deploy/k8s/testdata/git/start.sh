# Makes the repository, unless it is there, and serves it.
set -eu
cd /repos
if [ ! -e shop.git ]; then
  git init -q --bare -b main shop.git
  git -C shop.git config http.receivepack true
  git init -q -b main seed
  cd seed
  cp /etc/git-server/pfl-forge.yaml .
  echo "A shop." > README.md
  git add .
  git -c user.name=Ada -c user.email=ada@example.com commit -q -m first
  git push -q ../shop.git main
  cd ..
fi
# What guide-operators.md asks of whoever keeps an origin; forges do it by themselves.
while sleep 60; do git -C shop.git pack-refs --all; done &
exec /tools/testpod git /repos
