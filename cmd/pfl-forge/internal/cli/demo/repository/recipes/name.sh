# Names the program $NAME.
printf '%s\n' "$NAME" >NAME
text=$(tail -n +2 README.md)
printf '# %s\n%s\n' "$NAME" "$text" >README.md
