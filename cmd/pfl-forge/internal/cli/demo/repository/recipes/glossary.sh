# Collects the terms in GLOSSARY.txt. Sorts them when it was told to.
cat terms/*.txt >GLOSSARY.txt
if [ -s "$FORGE_FEEDBACK" ]; then
	sort -o GLOSSARY.txt GLOSSARY.txt
fi
