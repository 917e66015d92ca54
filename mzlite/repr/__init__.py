"""How data looks: types, values, columns, updates, and their bytes and texts.

    types ─▶ datum (Python values, canonical bytes) ─▶ column: fixed · var · numeric · interval ─▶ updates ─▶ encode
                                                        └─▶ text (textparse, textformat, textcolumns), binary

Reading order: `types`, `column` (what operators may ask of one), the four column classes, `datum` with `number` and
`jsonb` (order-preserving encodings), `updates`, `encode` (flat buffers). For text: `text`, then `timetokens`, `datetext`,
`intervaltext`, `timezone`, `calendar`; `decimals`, `jsontext`, `containertext`, `ranges`. Beside them `ids`, `timestamp`,
`errors`, `typenames`.
"""
