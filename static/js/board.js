// The board: what its parts are. The server decides everything; this page only hastens.

import { dress } from "./board/live.js";
import "./board/refusals.js";
import "./board/selection.js";
import "./board/drag.js";
import "./board/dialog.js";
import "./board/keyboard.js";
import "./board/look.js";
import "./board/partitions.js";
import "./board/undo.js";

dress();
