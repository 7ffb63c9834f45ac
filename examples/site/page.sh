# Makes out/NAME.html from NAME.txt: the first line is the title.
{
  printf '<link rel="stylesheet" href="style.css"><h1>%s</h1>\n' "$(head -n 1 "$1.txt")"
  tail -n +2 "$1.txt" | sed 's|.*|<p>&</p>|'
} > "out/$1.html"
