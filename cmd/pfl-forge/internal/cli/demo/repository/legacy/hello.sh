# Greeted in English only. Nobody uses it any more.
echo Hello
