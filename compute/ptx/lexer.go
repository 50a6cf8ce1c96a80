package ptx

import "strings"

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenName             // r1, %r1, $L_1, _
	tokenDot              // .global, .L2::128B: text without the dot
	tokenNumber           // 7, 0x1F, 1.5, 0f3F800000
	tokenString           // text without the quotes
	tokenMark             // one character: , ; { } ( ) [ ] < > @ ! | + - = :
	tokenWrong            // a character that PTX does not have, or an open string or comment
)

type token struct {
	kind tokenKind
	text string
	pos  Pos
}

// lexer cuts a text into tokens.
type lexer struct {
	text      string
	at        int
	line      int
	lineStart int // where the line begins
}

func newLexer(text string) *lexer { return &lexer{text: text, line: 1} }

// next returns the next token. At the end of the text it is tokenEnd again and again; nothing is read after a tokenWrong.
func (l *lexer) next() token {
	if wrong, ok := l.skipBlanks(); !ok {
		return wrong
	}
	pos := l.pos()
	if l.at == len(l.text) {
		return token{tokenEnd, "", pos}
	}
	c := l.text[l.at]
	switch {
	case isNameStart(c):
		return token{tokenName, l.name(), pos}
	case isDigit(c):
		return token{tokenNumber, l.number(), pos}
	case c == '.':
		l.at++
		return token{tokenDot, l.dotted(), pos}
	case c == '"':
		return l.quoted(pos)
	case strings.IndexByte(",;{}()[]<>@!|+-=:", c) >= 0:
		l.at++
		return token{tokenMark, l.text[l.at-1 : l.at], pos}
	}
	return token{tokenWrong, "character " + quote(string(c)), pos}
}

func (l *lexer) pos() Pos { return Pos{l.line, l.at - l.lineStart + 1} }

// skipBlanks passes blanks and comments. It fails with a token where a comment has no end.
func (l *lexer) skipBlanks() (token, bool) {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch {
		case rest[0] == '\n':
			l.at++
			l.newLine()
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r' || rest[0] == '\f' || rest[0] == '\v':
			l.at++
		case strings.HasPrefix(rest, "//"):
			length := strings.IndexByte(rest, '\n')
			if length < 0 {
				length = len(rest)
			}
			l.at += length
		case strings.HasPrefix(rest, "/*"):
			pos := l.pos()
			length := strings.Index(rest[2:], "*/")
			if length < 0 {
				return token{tokenWrong, "comment without an end", pos}, false
			}
			l.skipLines(length + 4)
		default:
			return token{}, true
		}
	}
	return token{}, true
}

// skipLines passes so many bytes and counts their lines.
func (l *lexer) skipLines(length int) {
	for end := l.at + length; l.at < end; {
		l.at++
		if l.text[l.at-1] == '\n' {
			l.newLine()
		}
	}
}

func (l *lexer) newLine() { l.line, l.lineStart = l.line+1, l.at }

// pass advances while the characters belong.
func (l *lexer) pass(belongs func(byte) bool) {
	for l.at < len(l.text) && belongs(l.text[l.at]) {
		l.at++
	}
}

// name returns a name, which may begin with a percent sign.
func (l *lexer) name() string {
	start := l.at
	l.at++
	l.pass(isNamePart)
	return l.text[start:l.at]
}

// dotted reads the part of a name after its dot, which may have one or several "::".
func (l *lexer) dotted() string {
	start := l.at
	for {
		l.pass(isNamePart)
		if !strings.HasPrefix(l.text[l.at:], "::") {
			return l.text[start:l.at]
		}
		l.at += len("::")
	}
}

// number returns a number with letters that follow it; only decimal ones have a point or a signed exponent.
func (l *lexer) number() string {
	start := l.at
	l.pass(isNamePart)
	if isLettered(l.text[start:l.at]) {
		return l.text[start:l.at]
	}
	if l.at < len(l.text) && l.text[l.at] == '.' {
		l.at++
		l.pass(isNamePart)
	}
	if last := l.text[l.at-1]; (last == 'e' || last == 'E') && l.at < len(l.text) && (l.text[l.at] == '+' || l.text[l.at] == '-') {
		l.at++
		l.pass(isDigit)
	}
	return l.text[start:l.at]
}

// isLettered reports whether a number begins with 0x, 0b, 0f or 0d: its digits are letters, too.
func isLettered(number string) bool {
	return len(number) > 1 && number[0] == '0' && strings.IndexByte("xXbBfFdD", number[1]) >= 0
}

// quoted returns a string between quotes on one line. PTX has no escapes.
func (l *lexer) quoted(pos Pos) token {
	rest := l.text[l.at+1:]
	end := strings.IndexAny(rest, "\"\n")
	if end < 0 || rest[end] != '"' {
		return token{tokenWrong, "string without an end", pos}
	}
	l.at += end + len(`""`)
	return token{tokenString, rest[:end], pos}
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isNameStart(c byte) bool { return isLetter(c) || c == '_' || c == '$' || c == '%' }
func isNamePart(c byte) bool  { return isLetter(c) || isDigit(c) || c == '_' || c == '$' }
