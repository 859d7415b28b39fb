# The tests: every language has every text.
status=0
for file in lang/*.txt; do
	for wanted in hello bye; do
		found=no
		while IFS='=' read -r key text; do
			if [ "$key" = "$wanted" ] && [ -n "$text" ]; then
				found=yes
			fi
		done <"$file"
		if [ "$found" = no ]; then
			printf '%s: no text for %s\n' "$file" "$wanted"
			status=1
		fi
	done
done
exit "$status"
