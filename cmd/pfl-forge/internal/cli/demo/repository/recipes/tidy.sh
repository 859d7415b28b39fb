# Puts a line that names the language on top of $FORGE_ITEM.
code=$(basename "$FORGE_ITEM" .txt)
text=$(cat "$FORGE_ITEM")
printf '# texts in %s\n%s\n' "$code" "$text" >"$FORGE_ITEM"
