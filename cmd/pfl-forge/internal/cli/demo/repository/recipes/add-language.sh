# Adds lang/$CODE.txt.
printf 'hello=%s\n' "$HELLO" >"lang/$CODE.txt"
if [ "$FORGE_ATTEMPT" -gt 1 ]; then
	echo "attempt $FORGE_ATTEMPT, because of:"
	cat "$FORGE_FEEDBACK"
	printf 'bye=%s\n' "$BYE" >>"lang/$CODE.txt"
fi
