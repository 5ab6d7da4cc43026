"""`python -m fabricui up|doctor|processes`: what `./run` hands over to."""

import sys

from fabricui.command_line import main

sys.exit(main(sys.argv[1:]))
