// Records what util.parseEnv of the Node.js that runs this makes of .env texts:
// node dotenv.mjs > node24.jsonl
import { parseEnv } from 'node:util'

const texts = [
  '', ' ', '\n', '\n\n', '#', '# only a comment', '# a=b', '# a\nA=1', '  # a=b\nA=1', 'A=1\n  # b=c\nC=2', 'A=1\n#b=c\n  # d=e\nC=2',
  'A=1', 'A=1\n', 'A=1\r\nB=2\r\n', 'A=1\rB=2', 'A=\r\nB=1\r\n', '\uFEFFA=1', '\uFEFF# c\nA=1', 'A=1\nA=2', 'A=1\nB=2\nA=3',
  '  A = b ', '\tA\t=\tb\t', 'A=b c', 'A b=c', 'A=\u00a0x\u00a0', 'A=1\t\n\tB=2\t', '\t\nA=1', 'A=1\n \n B=2', 'A.b-c=1', 'ä=ö', '1=2', 'A=1\u2028B=2',
  'A=', 'A=\n', 'A=\nB=1', 'A= ', 'A= \nB=1', 'A=  \n\n  B=1', 'A=\t\nB=1', 'A=\n\nB=1', 'A=\nB=\n', 'A=#', 'A= # c\nB=1', 'A=\n#c\nB=1',
  'A', 'A\nB=1', 'A\n=x', 'A=1\nB\nC=2', 'A=1\n B\n C=2', '=x', '=x\nA=1', '=A=1', ' =x\nB=1', 'A==b', 'A=b=c', 'A=1\n= y\nB=2',
  'A=x#c', 'A=x # c', 'A=x\t# c', 'A=x \\# y', 'A=b #', 'A="a#b"', "A='a # b' # c", 'A=`#`', 'A="x" # c\nB=1', 'A=a"#"b',
  'A="x"', "A='x'", 'A=`x`', 'A=""', "A=''\nB=1", 'A=``\nB="`"', 'A="x"y\nB=1', 'A="x"B=1\nC=2', 'A="a" "b"', 'A=x "y"', 'A= "x" ', "A=' x '", 'A="it\'s"', "A='\"`'",
  'A="x\ny"\nB=1', "A='x\n\ny'\nB=1", 'A=`x\n#y\n`\nB=1', 'A="x\r\ny"', 'A="\n"', 'A="x\nB=1\nC="y"',
  'A="x\nB=1', "A='x", 'A="', 'A=`x\nB=2', 'A="x # c\nB=1', 'A="x\n # c\nB=1', 'A="x"\n # c=d\nB=1',
  'A="a\\nb"', "A='a\\nb'", 'A=`a\\nb`', 'A=a\\nb', 'A="\\\\n\\t\\r"', 'A="x\\"y"\nB=1', 'A="$B ${C}"', 'A="x"\\',
  'export A=1', 'export  A  =  1', 'export\tA=1', 'exportA=1', 'export=1', 'export =1', 'export A', 'export A=', 'export A=\nB=1', 'export A="x"', 'export export A=1', 'export \nA=1', '\nexport A=1\nexport B=2\n', 'EXPORT A=1',
]
const curated = texts.length
const words = ['A', 'B', '=', '=', '"', "'", '`', ' ', '\t', '\n', '\n', '\r', '#', '\\n', 'export ', '\n #', '\nC=', 'ü']
let seed = 20251130
const random = (n) => { seed = (Math.imul(seed, 1103515245) + 12345) >>> 0; return (seed >>> 8) % n }
while (texts.length < curated + 900) texts.push(Array.from({ length: 3 + random(12) }, () => words[random(words.length)]).join(''))

texts.forEach((text, i) => console.log(JSON.stringify({ text, random: i >= curated, want: { ...parseEnv(text) } })))
