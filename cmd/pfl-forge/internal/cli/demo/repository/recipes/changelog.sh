# Adds $ENTRY to the changelog.
if [ "$FORGE_ATTEMPT" -eq 1 ]; then
	sleep 1 # thinks about it, so that others have time to be faster
fi
printf -- '- %s\n' "$ENTRY" >>CHANGELOG.md
