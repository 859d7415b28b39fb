# Writes one chapter of the handbook.
mkdir -p handbook
case $1 in
usage)
	printf '# Usage\n\n    sh greet.sh [language]\n' >handbook/usage.md
	;;
languages)
	printf '# Languages\n\n' >handbook/languages.md
	for file in lang/*.txt; do
		printf '%s %s\n' - "$(basename "$file" .txt)" >>handbook/languages.md
	done
	;;
contents)
	printf '# Handbook\n\n' >handbook/README.md
	for file in usage languages; do
		printf -- '- [%s](%s.md)\n' "$(head -n 1 "handbook/$file.md" | cut -c 3-)" "$file" >>handbook/README.md
	done
	;;
esac
