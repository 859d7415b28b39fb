# Prints a greeting. Usage: sh greet.sh [language]
while IFS='=' read -r key text; do
	if [ "$key" = hello ]; then
		printf '%s\n' "$text"
	fi
done <"lang/${1:-en}.txt"
