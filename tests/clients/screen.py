"""What a program draws on a terminal, as lines of text: enough of xterm for curses programs."""

import re

_CONTROL = re.compile(
    r"\x1b\[([?>]?)([0-9;]*)([@-~])"  # CSI
    r"|\x1b[()][0-9A-B]"  # character sets
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles
    r"|\x1b[=>78MDEc]"
    r"|[\r\n\b\t\x0e\x0f\x07]"
)


class Screen:
    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.last = " "

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)

    def feed(self, data):
        place = 0
        while place < len(data):
            match = _CONTROL.match(data, place)
            if match is None:
                self._put(data[place])
                place += 1
                continue
            place = match.end()
            if match.group(3) is not None and not match.group(1):
                numbers = [int(n) if n else 0 for n in match.group(2).split(";")]
                self._control(match.group(3), numbers)
            elif match.group(3) is None:
                self._single(match.group(0))

    def _put(self, character):
        if character == "\x1b":
            return
        if self.column >= self.columns:
            self.column = 0
            self.row = min(self.row + 1, self.rows - 1)
        self.cells[self.row][self.column] = character
        self.last = character
        self.column += 1

    def _single(self, code):
        if code == "\r":
            self.column = 0
        elif code in ("\n", "\x1bD"):
            self.row = min(self.row + 1, self.rows - 1)
        elif code == "\b":
            self.column = max(0, self.column - 1)
        elif code == "\t":
            self.column = min(self.columns - 1, (self.column // 8 + 1) * 8)
        elif code == "\x1bM":
            self.row = max(0, self.row - 1)

    def _control(self, final, numbers):
        count = max(1, numbers[0])
        if final in "Hf":
            self._move(count - 1, max(1, (numbers + [1])[1]) - 1)
        elif final in "G`":
            self._move(self.row, count - 1)
        elif final == "d":
            self._move(count - 1, self.column)
        elif final == "A":
            self._move(self.row - count, self.column)
        elif final == "B":
            self._move(self.row + count, self.column)
        elif final == "C":
            self._move(self.row, self.column + count)
        elif final == "D":
            self._move(self.row, self.column - count)
        elif final == "K":
            self._erase_line(numbers[0])
        elif final == "J":
            self._erase_screen(numbers[0])
        elif final == "X":
            end = min(self.columns, self.column + count)
            self.cells[self.row][self.column : end] = [" "] * (end - self.column)
        elif final == "P":
            row = self.cells[self.row]
            del row[self.column : self.column + count]
            row.extend([" "] * (self.columns - len(row)))
        elif final == "@":
            row = self.cells[self.row]
            row[self.column : self.column] = [" "] * count
            del row[self.columns :]
        elif final == "b":  # repeat
            for _ in range(count):
                self._put(self.last)

    def _move(self, row, column):
        self.row = max(0, min(self.rows - 1, row))
        self.column = max(0, min(self.columns - 1, column))

    def _erase_line(self, which):
        start, end = {0: (self.column, self.columns), 1: (0, self.column + 1)}.get(
            which, (0, self.columns)
        )
        self.cells[self.row][start:end] = [" "] * (end - start)

    def _erase_screen(self, which):
        if which == 0:
            self._erase_line(0)
        first = self.row + 1 if which == 0 else 0
        last = self.row if which == 1 else self.rows
        for row in range(first, last):
            self.cells[row] = [" "] * self.columns
