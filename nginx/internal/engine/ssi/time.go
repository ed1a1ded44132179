package ssi

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DefaultTime is the format of times unless a document sets another.
const DefaultTime = "%A, %d-%b-%Y %H:%M:%S %Z"

// maxTime bounds the text of a time.
const maxTime = 2048

// FormatTime formats t by the conversions of C's strftime in its own locale, which is not that of
// the system. An unknown one is kept as it is. A text that is too long is empty.
func FormatTime(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format) && b.Len() < maxTime; i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		if (format[i] == 'E' || format[i] == 'O') && i+1 < len(format) {
			i++ // of other locales
		}
		b.WriteString(conversion(format[i], t))
	}
	if b.Len() >= maxTime {
		return ""
	}
	return b.String()
}

// layouts are conversions that package time knows.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02", 'D': "01/02/06", 'e': "_2",
	'F': "2006-01-02", 'h': "Jan", 'H': "15", 'I': "03", 'j': "002", 'm': "01", 'M': "04", 'p': "PM", 'P': "pm", 'r': "03:04:05 PM", 'R': "15:04",
	'S': "05", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'Y': "2006", 'z': "-0700",
}

func conversion(c byte, t time.Time) string {
	if layout, ok := layouts[c]; ok {
		return t.Format(layout)
	}
	year, week := t.ISOWeek()
	day := int(t.Weekday())
	switch c {
	case '%':
		return "%"
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100)
	case 'g':
		return fmt.Sprintf("%02d", year%100)
	case 'G':
		return strconv.Itoa(year)
	case 'k':
		return fmt.Sprintf("%2d", t.Hour())
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1)
	case 'n':
		return "\n"
	case 's':
		return strconv.FormatInt(t.Unix(), 10)
	case 't':
		return "\t"
	case 'u':
		return strconv.Itoa((day+6)%7 + 1)
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-day)/7)
	case 'V':
		return fmt.Sprintf("%02d", week)
	case 'w':
		return strconv.Itoa(day)
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(day+6)%7)/7)
	case 'Z':
		if t.Location() == time.UTC {
			return "GMT"
		}
		return t.Format("MST")
	}
	return "%" + string(rune(c))
}
