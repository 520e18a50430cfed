"""Every statement, figure and erratum of the papers, mapped to claims or to the reason why not."""

from marginlab.proofs_check.inventory.loader import (
    Entry as Entry,
)
from marginlab.proofs_check.inventory.loader import (
    PaperInventory as PaperInventory,
)
from marginlab.proofs_check.inventory.loader import (
    inventory as inventory,
)
from marginlab.proofs_check.inventory.loader import (
    inventory_document as inventory_document,
)
from marginlab.proofs_check.inventory.loader import (
    inventory_gaps as inventory_gaps,
)
